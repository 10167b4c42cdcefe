"""Rows of length one, as embeddings are compared; a row of zeros stays one."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="unit_length",
    description="y = x / sqrt(sum(x^2)), row by row; zeros where the row is zero",
    op_type="norm",
    axes={"rows": "embeddings", "cols": "dimensions"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="3 * rows * cols",
    workloads=(at(256, 768), at(100, 1024), at(1, 1, "odd"), at(3, 17, "odd"), at(9, 1025, "odd")),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    length = x.square().sum(-1, keepdim=True).sqrt()
    return x / torch.where(length == 0, 1.0, length)
