"""Weights that prefer the least of a row, as of distances to centers; one that is infinite has no weight."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="soft_min",
    description="y = exp(min(x) - x) / sum(exp(min(x) - x)), row by row",
    op_type="softmax",
    axes={"rows": "points", "cols": "centers"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="5 * rows * cols",
    workloads=(at(256, 512), at(64, 2048), at(1, 1, "odd"), at(3, 17, "odd"), at(33, 130, "odd")),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(-x, dim=-1)


def extra(x: torch.Tensor) -> torch.Tensor:
    """Rounding x - min(x) moves the exponential by as many roundoffs as the difference is large."""
    return 4 * (x - x.amin(-1, keepdim=True)).nan_to_num(posinf=0.0)
