"""An activation, in two types."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="silu_types",
    description="y = x * sigmoid(x)",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="4 * rows * cols",
    workloads=(
        Workload(name="1024x1024-fp32", axes={"rows": 1024, "cols": 1024}),
        Workload(name="1024x1024-bf16", axes={"rows": 1024, "cols": 1024}, dtype="bfloat16"),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(x)


def extra(x: torch.Tensor) -> torch.Tensor:
    return 2 * x.abs()
