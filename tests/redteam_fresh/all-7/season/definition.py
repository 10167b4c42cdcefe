"""Difference to the value a season ago, where values below a threshold count as zero."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="season",
    description="y[row, i] = z[row, i] - z[row, i - lag], where z is x from the threshold on, and 0 below and before",
    op_type="elementwise",
    axes={"rows": "series", "cols": "times"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols")),
        "lag": ScalarSpec(type="int", value=52, between=(4, 1048576)),
        "threshold": ScalarSpec(value=0.3, between=(0.05, 0.95)),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="rows * cols",
    workloads=(at(64, 512), at(16, 2000)),
)


def reference(x: torch.Tensor, lag: int, threshold: float) -> torch.Tensor:
    kept = torch.where(x >= threshold, x, torch.zeros_like(x))
    span = min(lag, x.shape[-1])
    return kept - torch.cat([torch.zeros_like(kept[:, :span]), kept[:, : x.shape[-1] - span]], -1)
