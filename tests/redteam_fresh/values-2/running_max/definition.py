"""running_max for an attack on the gate."""

from __future__ import annotations

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload



def at(rows, cols):
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="running_max",
    description="largest element of a row so far",
    op_type="scan",
    axes={"rows": "channels", "cols": "samples"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="rows * cols",
    workloads=(at(64, 250), at(32, 1024)),
)


def reference(x):
    return x.cummax(-1).values if x.numel() else x.clone()
