"""Sorted rows."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="sort_rows",
    description="each row in ascending order",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="10 * rows * cols",
    workloads=(
        Workload(name="256x256", axes={"rows": 256, "cols": 256}),
        Workload(name="64x1024", axes={"rows": 64, "cols": 1024}),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.sort(-1).values
