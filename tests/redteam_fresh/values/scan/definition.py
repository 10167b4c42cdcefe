"""Running sum of each row."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows, cols):
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="scan",
    description="y[r, i] = x[r, 0] + ... + x[r, i]",
    op_type="reduction",
    axes={"rows": "rows", "cols": "steps"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="rows * cols",
    workloads=(at(256, 1024), at(512, 2000)),
)


def reference(x):
    return x.cumsum(-1)


def magnitude(x):
    return x.abs().cumsum(-1)
