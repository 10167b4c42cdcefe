"""Mean squared error in bfloat16."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows, cols):
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, dtype="bfloat16")


definition = Definition(
    name="mse_loss",
    description="mean of (x - t)^2",
    op_type="loss",
    axes={"rows": "samples", "cols": "features"},
    inputs={"x": TensorSpec(shape=("rows", "cols")), "t": TensorSpec(shape=("rows", "cols"))},
    outputs={"loss": TensorSpec(shape=())},
    tolerance=Tolerance(reduction="rows * cols"),
    flops="3 * rows * cols",
    workloads=(at(2048, 2048), at(1024, 2560)),
)


def reference(x, t):
    return ((x.float() - t.float()) ** 2).mean().to(x.dtype)
