"""Colours of levels from 0 to 1, from a table that divides them evenly."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(rows: int, cols: int, colors: int) -> Workload:
    return Workload(name=f"{rows}x{cols}x{colors}", axes={"rows": rows, "cols": cols, "colors": colors})


definition = Definition(
    name="color_map",
    description="y = table[floor(level * colors)]; levels are from 0 to 1, and 1 has the last colour",
    op_type="gather",
    axes={"rows": "lines", "cols": "points", "colors": "colours"},
    inputs={
        "level": TensorSpec(shape=("rows", "cols"), distribution="uniform:0:1"),
        "table": TensorSpec(shape=("colors",)),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="2 * rows * cols",
    workloads=(at(60, 300, 100), at(40, 128, 256)),
)


def reference(level: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    places = (level.double() * len(table)).floor().long()
    return table[places.clamp(0, len(table) - 1)]
