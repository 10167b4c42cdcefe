"""Least distance of each row, with its place; infinity stands where nothing is."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="nearest",
    description="least = smallest distance of a row, place = first place that has it, found = whether it is finite;"
    " infinity marks places with nothing, and a row may have nothing else",
    op_type="reduction",
    axes={"rows": "queries", "cols": "candidates"},
    inputs={"distance": TensorSpec(shape=("rows", "cols"))},
    outputs={
        "least": TensorSpec(shape=("rows",)),
        "place": TensorSpec(shape=("rows",), dtype="int64"),
        "found": TensorSpec(shape=("rows",), dtype="bool"),
    },
    flops="rows * cols",
    workloads=(at(64, 500), at(150, 256)),
)


def reference(distance: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    least = distance.amin(-1)
    place = (distance == least.unsqueeze(-1)).int().argmax(-1)
    return least, place, least.isfinite()
