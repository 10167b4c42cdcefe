"""Squared distance of two stacks of vectors in float64, written well: odd sizes, float64 sums, deterministic."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, dtype="float64", set=set)


definition = Definition(
    name="dot64",
    description="y = sum((a - b)^2), row by row, in double precision; the same bits whenever it is called",
    op_type="reduction",
    axes={"rows": "vectors", "cols": "elements"},
    inputs={"a": TensorSpec(shape=("rows", "cols")), "b": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows",))},
    deterministic=True,
    tolerance=Tolerance(reduction="cols", accumulate="float64"),
    flops="3 * rows * cols",
    workloads=(at(2100, 1024), at(1500, 1500), at(1, 1, "odd"), at(17, 67, "odd"), at(33, 129, "odd")),
)


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return ((a - b) ** 2).sum(-1)


def magnitude(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return ((a.abs() + b.abs()) ** 2).sum(-1)
