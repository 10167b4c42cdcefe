"""Scale and shift of columns."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="affine",
    description="y = x * weight + bias",
    axes={"rows": "rows", "cols": "columns"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols")),
        "weight": TensorSpec(shape=("cols",), role="weight"),
        "bias": TensorSpec(shape=("cols",), role="weight"),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="2 * rows * cols",
    workloads=(
        Workload(name="512x512", axes={"rows": 512, "cols": 512}),
        Workload(name="256x1024", axes={"rows": 256, "cols": 1024}),
    ),
)


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return x * weight + bias


def magnitude(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return (x * weight).abs() + bias.abs()
