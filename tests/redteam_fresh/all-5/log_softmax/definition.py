"""Logarithm of softmax, as a newcomer writes it: two sizes, no odd ones."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows, cols):
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="log_softmax",
    description="y = x - log(sum(exp(x))), row by row",
    op_type="softmax",
    axes={"rows": "rows", "cols": "classes"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="6 * rows * cols",
    workloads=(at(64, 1000), at(32, 4096)),
)


def reference(x):
    return torch.log_softmax(x, -1)
