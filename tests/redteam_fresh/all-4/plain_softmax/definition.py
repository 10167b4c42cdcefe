"""Softmax."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="plain_softmax",
    description="y = softmax(x) over the last axis; masked scores are minus infinity",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="5 * rows * cols",
    workloads=(
        Workload(name="512x512", axes={"rows": 512, "cols": 512}),
        Workload(name="256x1024", axes={"rows": 256, "cols": 1024}),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def extra(x: torch.Tensor) -> torch.Tensor:
    """The argument of the exponential is rounded."""
    return 2 * (x - x.amax(-1, keepdim=True)).abs()
