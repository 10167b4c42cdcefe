"""Length of each gradient, as clipping needs it."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, n: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{n}", axes={"rows": rows, "n": n}, set=set)


definition = Definition(
    name="tensor_norm",
    description="length = sqrt(sum(x^2)) of each row",
    op_type="norm",
    axes={"rows": "gradients", "n": "elements of a gradient"},
    inputs={"x": TensorSpec(shape=("rows", "n"))},
    outputs={"length": TensorSpec(shape=("rows",))},
    tolerance=Tolerance(reduction="n"),
    flops="2 * rows * n",
    workloads=(at(2, 1000000), at(8, 400000)),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.linalg.vector_norm(x, dim=1)
