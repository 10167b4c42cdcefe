"""Rotated rows."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="roll_rows",
    description="y[r, (i + shift) % cols] = x[r, i]",
    axes={"rows": "rows", "cols": "columns"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols")),
        "shift": ScalarSpec(type="int", value=7, between=(0, 4096)),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="rows * cols",
    workloads=(
        Workload(name="512x512", axes={"rows": 512, "cols": 512}),
        Workload(name="256x1024", axes={"rows": 256, "cols": 1024}, scalars={"shift": 100}),
    ),
)


def reference(x: torch.Tensor, shift: int) -> torch.Tensor:
    return x.roll(shift, 1)
