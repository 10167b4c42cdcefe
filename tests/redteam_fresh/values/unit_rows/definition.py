"""Rows of length one."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows, cols):
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="unit_rows",
    description="y = x / max(sqrt(sum(x^2)), eps), row by row",
    op_type="norm",
    axes={"rows": "vectors", "cols": "features"},
    inputs={"x": TensorSpec(shape=("rows", "cols")), "eps": ScalarSpec(value=1e-12)},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="3 * rows * cols",
    workloads=(at(512, 1024), at(300, 768)),
)


def reference(x, eps):
    return torch.nn.functional.normalize(x, dim=-1, eps=eps)
