"""Norm of rows, of which some are wide."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="rms_wide",
    description="y = x / sqrt(mean(x^2) + eps), row by row",
    op_type="norm",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols")), "eps": ScalarSpec(value=1e-5)},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="4 * rows * cols",
    workloads=(
        Workload(name="2048x1024", axes={"rows": 2048, "cols": 1024}),
        Workload(name="64x16384", axes={"rows": 64, "cols": 16384}),
        Workload(name="1x1", axes={"rows": 1, "cols": 1}, set="odd"),
        Workload(name="3x17", axes={"rows": 3, "cols": 17}, set="odd"),
        Workload(name="5x16385", axes={"rows": 5, "cols": 16385}, set="odd"),
    ),
)


def reference(x: torch.Tensor, eps: float) -> torch.Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
