"""Place of the largest id of each row, the first of several."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload

definition = Definition(
    name="largest_id",
    description="Place of the largest id of each row, the first of several",
    axes={"rows": "rows", "cols": "elements of a row"},
    inputs={
        "ids": TensorSpec(shape=("rows", "cols"), dtype="int64", distribution="integers:0:4611686018427387904")
    },
    outputs={"place": TensorSpec(shape=("rows",), dtype="int64")},
    flops="rows * cols",
    workloads=(
        Workload(name="64x512", axes={"rows": 64, "cols": 512}),
        Workload(name="16x4096", axes={"rows": 16, "cols": 4096}),
        Workload(name="1x1", axes={"rows": 1, "cols": 1}, set="odd"),
        Workload(name="3x100", axes={"rows": 3, "cols": 100}, set="odd"),
        Workload(name="7x1023", axes={"rows": 7, "cols": 1023}, set="odd"),
    ),
)


def reference(ids: torch.Tensor) -> torch.Tensor:
    largest = ids == ids.amax(-1, keepdim=True)
    places = torch.arange(ids.shape[-1], device=ids.device).expand(ids.shape)
    return places.masked_fill(~largest, ids.shape[-1]).amin(-1)
