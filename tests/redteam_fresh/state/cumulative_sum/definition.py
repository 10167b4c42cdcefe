"""Cumulative sum over the last axis with a start and a direction, as a newcomer writes it."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload

definition = Definition(
    name="cumulative_sum",
    description="y[i] = start + sum of x up to i; from the end where reverse is set",
    op_type="reduction",
    axes={"rows": "rows", "cols": "columns"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols")),
        "start": ScalarSpec(value=0.0),
        "reverse": ScalarSpec(type="bool", value=False),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="rows * cols",
    workloads=(
        Workload(name="256x512", axes={"rows": 256, "cols": 512}),
        Workload(name="1024x1024", axes={"rows": 1024, "cols": 1024}),
    ),
)


def reference(x: torch.Tensor, start: float, reverse: bool) -> torch.Tensor:
    if reverse:
        return x.flip(-1).cumsum(-1).flip(-1) + start
    return x.cumsum(-1) + start


def magnitude(x: torch.Tensor, start: float, reverse: bool) -> torch.Tensor:
    if reverse:
        return x.abs().flip(-1).cumsum(-1).flip(-1) + abs(start)
    return x.abs().cumsum(-1) + abs(start)
