"""A running sum."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="running_sum",
    description="y[r, i] = sum of x[r, :i + 1]",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="rows * cols",
    workloads=(
        Workload(name="1024x1024", axes={"rows": 1024, "cols": 1024}),
        Workload(name="512x2048", axes={"rows": 512, "cols": 2048}),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.cumsum(-1)


def magnitude(x: torch.Tensor) -> torch.Tensor:
    return x.abs().cumsum(-1)
