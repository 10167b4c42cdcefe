"""row_mean for an attack on the gate."""

from __future__ import annotations

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload



def at(rows, cols, set="representative"):
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="row_mean",
    description="mean of each row, with bits that do not depend on other rows",
    op_type="reduction",
    axes={"rows": "requests", "cols": "features"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows",))},
    batch_invariant="rows",
    deterministic=True,
    tolerance=Tolerance(reduction="cols"),
    flops="rows * cols",
    workloads=(at(64, 4096), at(100, 1000), at(1, 1, "odd"), at(17, 67, "odd"), at(33, 129, "odd")),
)


def reference(x):
    return x.mean(-1)


def magnitude(x):
    return x.abs().mean(-1)
