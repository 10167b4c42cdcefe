"""Place of the first padding token of each row, or its length."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload

definition = Definition(
    name="row_lengths",
    description="Place of the first padding token of each row, or its length",
    axes={"rows": "rows", "cols": "elements of a row"},
    inputs={
        "token": TensorSpec(shape=("rows", "cols"), dtype="int64"),
        "pad": ScalarSpec(type="int", value=3, between=(0, 127)),
    },
    outputs={"length": TensorSpec(shape=("rows",), dtype="int64")},
    flops="rows * cols",
    workloads=(
        Workload(name="64x512", axes={"rows": 64, "cols": 512}),
        Workload(name="16x4096", axes={"rows": 16, "cols": 4096}),
        Workload(name="1x1", axes={"rows": 1, "cols": 1}, set="odd"),
        Workload(name="3x100", axes={"rows": 3, "cols": 100}, set="odd"),
        Workload(name="7x1023", axes={"rows": 7, "cols": 1023}, set="odd"),
    ),
)


def reference(token: torch.Tensor, pad: int) -> torch.Tensor:
    places = torch.arange(token.shape[-1], device=token.device).expand(token.shape)
    return places.masked_fill(token != pad, token.shape[-1]).amin(-1)
