"""Sum of sizes, with bits that do not depend on the batch."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows, cols, set="representative"):
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="invariant_norm",
    description="y = sum(abs(x)), row by row, with bits that do not depend on other rows",
    op_type="reduction",
    axes={"rows": "requests", "cols": "values"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows",))},
    batch_invariant="rows",
    tolerance=Tolerance(reduction="cols"),
    flops="rows * cols",
    workloads=(at(64, 4096), at(512, 1000)),
)


def reference(x):
    return x.abs().sum(-1)
