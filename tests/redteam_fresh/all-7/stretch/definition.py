"""Contrast of pixels stretched to all of 0 to 1, row by row; a row of one level is black."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="stretch",
    description="y = (x - low) / (high - low) with the least and the largest pixel of a row; 0 where they are equal",
    op_type="norm",
    axes={"rows": "lines", "cols": "pixels"},
    inputs={"x": TensorSpec(shape=("rows", "cols"), distribution="uniform:0:1")},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    constraints=("0 <= x <= 1",),
    flops="4 * rows * cols",
    workloads=(at(128, 640), at(48, 1000)),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    return torch.where(high > low, (x - low) / torch.where(high > low, high - low, 1), 0)
