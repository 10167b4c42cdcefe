"""Rows of unit length."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="unit_rows",
    description="y = x / sqrt(sum(x * x)), row by row",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="3 * rows * cols",
    workloads=(
        Workload(name="256x1024", axes={"rows": 256, "cols": 1024}),
        Workload(name="512x512", axes={"rows": 512, "cols": 512}),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x / (x * x).sum(-1, keepdim=True).sqrt()
