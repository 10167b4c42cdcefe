"""Rows of bytes times a vector of bytes."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="int8_rows",
    description="y[r] = sum of w[r, i] * x[i]",
    axes={"rows": "rows", "cols": "columns"},
    inputs={
        "w": TensorSpec(shape=("rows", "cols"), dtype="int8", role="weight", distribution="integers:-128:128"),
        "x": TensorSpec(shape=("cols",), dtype="int8", distribution="integers:-128:128"),
    },
    outputs={"y": TensorSpec(shape=("rows",), dtype="int32")},
    flops="2 * rows * cols",
    workloads=(
        Workload(name="512x1024", axes={"rows": 512, "cols": 1024}),
        Workload(name="256x2048", axes={"rows": 256, "cols": 2048}),
    ),
)


def reference(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return (w.long() * x.long()).sum(-1).int()
