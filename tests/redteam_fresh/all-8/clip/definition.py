"""Elements held between two limits."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="clip",
    description="y = x where it is between low and high, else the nearer of both; NaN stays NaN",
    op_type="elementwise",
    axes={"rows": "sequences", "cols": "places"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols")),
        "low": ScalarSpec(value=-1.0, between=(-8.0, 0.0)),
        "high": ScalarSpec(value=1.0, between=(0.0, 8.0)),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="2 * rows * cols",
    workloads=(at(48, 256), at(100, 300)),
)


def reference(x: torch.Tensor, low: float, high: float) -> torch.Tensor:
    return x.clamp(low, high)
