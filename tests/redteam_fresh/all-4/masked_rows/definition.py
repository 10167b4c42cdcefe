"""Sums of chosen elements."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="masked_rows",
    description="y[r] = sum of x[r, i] where mask[r, i]",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols")), "mask": TensorSpec(shape=("rows", "cols"), dtype="bool")},
    outputs={"y": TensorSpec(shape=("rows",))},
    tolerance=Tolerance(reduction="cols"),
    flops="rows * cols",
    workloads=(
        Workload(name="512x1024", axes={"rows": 512, "cols": 1024}),
        Workload(name="256x2048", axes={"rows": 256, "cols": 2048}),
    ),
)


def reference(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.where(mask, x, 0).sum(-1)


def magnitude(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.where(mask, x, 0).abs().sum(-1)
