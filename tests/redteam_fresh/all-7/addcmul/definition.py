"""Sum of a product and a third tensor, each with a factor of its own."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="addcmul",
    description="y = alpha * a * b + beta * c; b may be a mask of zeros and ones",
    op_type="elementwise",
    axes={"rows": "sequences", "cols": "places"},
    inputs={
        "a": TensorSpec(shape=("rows", "cols")),
        "b": TensorSpec(shape=("rows", "cols")),
        "c": TensorSpec(shape=("rows", "cols")),
        "alpha": ScalarSpec(value=1.0, between=(-4.0, 4.0)),
        "beta": ScalarSpec(value=0.5, between=(-4.0, 4.0)),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="4 * rows * cols",
    workloads=(at(64, 1024), at(200, 500)),
)


def reference(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, alpha: float, beta: float) -> torch.Tensor:
    return alpha * a * b + beta * c


def magnitude(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, alpha: float, beta: float) -> torch.Tensor:
    """The terms cancel: rounding errors are relative to the sum of their absolute values."""
    return (alpha * a * b).abs() + (beta * c).abs()
