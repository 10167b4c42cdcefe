"""Red team's step of a power iteration: a square matrix times a vector."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(n: int, set: str = "representative") -> Workload:
    return Workload(name=f"{n}", axes={"n": n}, set=set)


definition = Definition(
    name="power_step",
    description="y = A x of a square matrix, such as a covariance or a graph's weights",
    op_type="gemv",
    axes={"n": "rows and columns"},
    inputs={"a": TensorSpec(shape=("n", "n")), "x": TensorSpec(shape=("n",))},
    outputs={"y": TensorSpec(shape=("n",))},
    tolerance=Tolerance(reduction="n"),
    flops="2 * n * n",
    workloads=(at(512), at(1000), at(1, "odd"), at(67, "odd"), at(129, "odd")),
)


def reference(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return a @ x


def magnitude(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Terms cancel: rounding errors are relative to the sum of their absolute values."""
    return a.abs() @ x.abs()
