"""Transposed copy of a matrix."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="transpose",
    description="y[col, row] = x[row, col]",
    op_type="other",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("cols", "rows"))},
    flops="0",
    workloads=(at(48, 4096), at(64, 2048), at(1, 1, "odd"), at(3, 17, "odd"), at(67, 129, "odd")),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.t().contiguous()
