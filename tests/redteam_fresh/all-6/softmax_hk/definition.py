"""Softmax over the last axis."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload

definition = Definition(
    name="softmax_hk",
    description="Softmax over the last axis",
    axes={"rows": "rows", "cols": "elements of a row"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="5 * rows * cols",
    workloads=(
        Workload(name="64x512", axes={"rows": 64, "cols": 512}),
        Workload(name="16x4096", axes={"rows": 16, "cols": 4096}),
        Workload(name="1x1", axes={"rows": 1, "cols": 1}, set="odd"),
        Workload(name="3x100", axes={"rows": 3, "cols": 100}, set="odd"),
        Workload(name="7x1023", axes={"rows": 7, "cols": 1023}, set="odd"),
        Workload(name="5x300-masked", axes={"rows": 5, "cols": 300}, distribution="masked", set="odd"),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)


def extra(x: torch.Tensor) -> torch.Tensor:
    """Rounding x - max(x) moves the exponential by as many roundoffs as the difference is large."""
    return 4 * (x.amax(-1, keepdim=True) - x).nan_to_num(posinf=0.0)
