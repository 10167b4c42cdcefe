"""Distance of two sets of points, row by row, which callers may find to be the same."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="distance",
    description="y[row] = sqrt(sum((a[row] - b[row])^2))",
    op_type="reduction",
    axes={"rows": "points", "cols": "coordinates"},
    inputs={"a": TensorSpec(shape=("rows", "cols")), "b": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows",))},
    tolerance=Tolerance(reduction="cols"),
    flops="3 * rows * cols",
    workloads=(at(4096, 64), at(512, 1000), at(1, 1, "odd"), at(3, 17, "odd"), at(129, 67, "odd")),
)


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a - b).square().sum(-1).sqrt()
