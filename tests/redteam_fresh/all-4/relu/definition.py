"""Linear rectifier."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="relu",
    description="y = max(x, 0)",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="rows * cols",
    workloads=(
        Workload(name="512x512", axes={"rows": 512, "cols": 512}),
        Workload(name="256x1024", axes={"rows": 256, "cols": 1024}),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x)
