"""Sum of each row, in the same bits at each call."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload

definition = Definition(
    name="row_totals",
    description="Sum of each row, in the same bits at each call",
    axes={"rows": "rows", "cols": "elements of a row"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows",))},
    tolerance=Tolerance(reduction="cols"),
    deterministic=True,
    flops="rows * cols",
    workloads=(
        Workload(name="64x512", axes={"rows": 64, "cols": 512}),
        Workload(name="16x4096", axes={"rows": 16, "cols": 4096}),
        Workload(name="1x1", axes={"rows": 1, "cols": 1}, set="odd"),
        Workload(name="3x100", axes={"rows": 3, "cols": 100}, set="odd"),
        Workload(name="7x1023", axes={"rows": 7, "cols": 1023}, set="odd"),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.sum(-1)


def magnitude(x: torch.Tensor) -> torch.Tensor:
    """Terms cancel."""
    return x.abs().sum(-1)
