"""Elements of each row in reverse order."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload

definition = Definition(
    name="reversed_rows",
    description="Elements of each row in reverse order",
    axes={"rows": "rows", "cols": "elements of a row"},
    inputs={"x": TensorSpec(shape=("rows", "cols"), layout="any")},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
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
    return x.flip(-1)
