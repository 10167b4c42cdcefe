"""Elementwise product of two matrices of any layout, as a newcomer writes it."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload

definition = Definition(
    name="multiply",
    description="z = x * y",
    axes={"rows": "rows", "cols": "columns"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols"), layout="any"),
        "y": TensorSpec(shape=("rows", "cols"), layout="any"),
    },
    outputs={"z": TensorSpec(shape=("rows", "cols"))},
    flops="rows * cols",
    workloads=(
        Workload(name="512x512", axes={"rows": 512, "cols": 512}),
        Workload(name="1024x2048", axes={"rows": 1024, "cols": 2048}),
    ),
)


def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * y
