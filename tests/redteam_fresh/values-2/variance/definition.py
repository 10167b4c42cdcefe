"""variance for an attack on the gate."""

from __future__ import annotations

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload



def at(rows, cols):
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="variance",
    description="variance of each row",
    op_type="reduction",
    axes={"rows": "channels", "cols": "samples"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows",))},
    tolerance=Tolerance(reduction="cols"),
    flops="4 * rows * cols",
    workloads=(at(4, 524288), at(3, 600000)),
)


def reference(x):
    return x.var(-1, unbiased=False)
