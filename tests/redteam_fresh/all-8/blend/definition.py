"""Sum of two stacks of planes, each with a factor of its own."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload

SHAPE = ("batch", "rows", "cols")


def at(batch: int, rows: int, cols: int) -> Workload:
    return Workload(name=f"{batch}x{rows}x{cols}", axes={"batch": batch, "rows": rows, "cols": cols})


definition = Definition(
    name="blend",
    description="y = alpha * a + beta * b; either input may be any view of a tensor",
    op_type="elementwise",
    axes={"batch": "planes", "rows": "rows of a plane", "cols": "columns of a plane"},
    inputs={
        "a": TensorSpec(shape=SHAPE, layout="any"),
        "b": TensorSpec(shape=SHAPE, layout="any"),
        "alpha": ScalarSpec(value=0.75, between=(-4.0, 4.0)),
        "beta": ScalarSpec(value=0.25, between=(-4.0, 4.0)),
    },
    outputs={"y": TensorSpec(shape=SHAPE)},
    flops="3 * batch * rows * cols",
    workloads=(at(4, 64, 96), at(6, 40, 200)),
)


def reference(a: torch.Tensor, b: torch.Tensor, alpha: float, beta: float) -> torch.Tensor:
    return alpha * a + beta * b


def magnitude(a: torch.Tensor, b: torch.Tensor, alpha: float, beta: float) -> torch.Tensor:
    """The terms cancel: rounding errors are relative to the sum of their absolute values."""
    return (alpha * a).abs() + (beta * b).abs()
