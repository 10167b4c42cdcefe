"""Squared norm of each row in float64, as a newcomer writes it: the tolerance is the default one."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, dtype="float64")


definition = Definition(
    name="sq_norm64",
    description="y = sum(x^2), row by row, in double precision",
    op_type="reduction",
    axes={"rows": "vectors", "cols": "elements"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows",))},
    tolerance=Tolerance(reduction="cols"),
    flops="2 * rows * cols",
    workloads=(at(1024, 512), at(512, 768)),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return (x * x).sum(-1)
