"""above for an attack on the gate."""

from __future__ import annotations

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload



def at(rows, cols):
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="above",
    description="whether each element is above a threshold",
    op_type="mask",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols")), "threshold": ScalarSpec(value=0.0)},
    outputs={"y": TensorSpec(shape=("rows", "cols"), dtype="bool")},
    flops="rows * cols",
    workloads=(at(64, 250), at(32, 1024)),
)


def reference(x, threshold):
    return x > threshold
