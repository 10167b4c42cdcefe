"""Cumulative sum of 64-bit integers, as a newcomer writes it: two sizes, default values."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="cumsum64",
    description="y[r, c] = sum of x[r, 0..c], in 64-bit integers",
    op_type="scan",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols"), dtype="int64")},
    outputs={"y": TensorSpec(shape=("rows", "cols"), dtype="int64")},
    deterministic=True,
    flops="rows * cols",
    workloads=(at(2200, 1000), at(2400, 900)),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.cumsum(-1)
