"""l1_norm for an attack on the gate."""

from __future__ import annotations

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload



def at(rows, cols):
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="l1_norm",
    deterministic=True,
    description="sum of the absolute values of each row",
    op_type="reduction",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows",))},
    tolerance=Tolerance(reduction="cols"),
    flops="2 * rows * cols",
    workloads=(at(8, 16384), at(6, 20000)),
)


def reference(x):
    return x.abs().sum(-1)
