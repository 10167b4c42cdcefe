"""Lengths of rows in double precision."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows, cols):
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, dtype="float64")


definition = Definition(
    name="row_norm64",
    description="y = sum(x^2), row by row, in double precision",
    op_type="reduction",
    axes={"rows": "vectors", "cols": "features"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows",))},
    tolerance=Tolerance(reduction="cols"),
    flops="2 * rows * cols",
    workloads=(at(512, 1024), at(300, 768)),
)


def reference(x):
    return (x * x).sum(-1)
