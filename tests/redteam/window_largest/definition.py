"""Largest of the last `width` elements up to each one."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload

definition = Definition(
    name="window_largest",
    description="Largest of the last `width` elements up to each one",
    axes={"rows": "rows", "cols": "elements of a row"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols")),
        "width": ScalarSpec(type="int", value=64, between=(1, 1048576)),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="rows * cols",
    workloads=(
        Workload(name="64x512", axes={"rows": 64, "cols": 512}),
        Workload(name="16x1024", axes={"rows": 16, "cols": 1024}),
        Workload(name="1x1", axes={"rows": 1, "cols": 1}, set="odd"),
        Workload(name="3x100", axes={"rows": 3, "cols": 100}, set="odd"),
        Workload(name="7x1023", axes={"rows": 7, "cols": 1023}, set="odd"),
    ),
)


def reference(x: torch.Tensor, width: int) -> torch.Tensor:
    span = max(1, min(width, x.shape[-1]))
    padded = torch.nn.functional.pad(x, (span - 1, 0), value=float("-inf"))
    return padded.unfold(-1, span, 1).amax(-1)
