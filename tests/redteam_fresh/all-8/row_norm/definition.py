"""Length of each row, computed so that no square leaves the range of its type."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="row_norm",
    description="y = sqrt(sum of x * x) along each row, without overflow or underflow of squares",
    op_type="reduction",
    axes={"rows": "vectors", "cols": "components"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows",))},
    tolerance=Tolerance(reduction="cols"),
    flops="2 * rows * cols",
    workloads=(at(100, 384), at(60, 1000)),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    largest = x.abs().amax(-1, keepdim=True)
    scale = torch.where(largest > 0, largest, torch.ones_like(largest))
    return (x / scale).square().sum(-1).sqrt() * scale.squeeze(-1)
