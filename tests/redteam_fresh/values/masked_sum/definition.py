"""Sum of the allowed values of each row."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows, cols):
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="masked_sum",
    description="y = sum of x where mask is true, row by row",
    op_type="reduction",
    axes={"rows": "queries", "cols": "keys"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols")),
        "mask": TensorSpec(shape=("rows", "cols"), dtype="bool"),
    },
    outputs={"y": TensorSpec(shape=("rows",))},
    tolerance=Tolerance(reduction="cols"),
    flops="rows * cols",
    workloads=(at(256, 1024), at(512, 2000)),
)


def reference(x, mask):
    return x.masked_fill(~mask, 0.0).sum(-1)


def magnitude(x, mask):
    return x.abs().masked_fill(~mask, 0.0).sum(-1)
