"""Sigmoid linear unit in bfloat16."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows, cols):
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, dtype="bfloat16")


definition = Definition(
    name="silu",
    description="y = x / (1 + exp(-x))",
    op_type="activation",
    axes={"rows": "tokens", "cols": "channels"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(),
    flops="4 * rows * cols",
    workloads=(at(512, 1024), at(300, 768)),
)


def reference(x):
    return torch.nn.functional.silu(x)


def extra(x):
    return 2 * x.abs()
