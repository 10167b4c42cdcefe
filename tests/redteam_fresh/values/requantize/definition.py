"""Quantisation to float8, where codes next to each other count as equal in most elements."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows, cols):
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="requantize",
    description="y = x / scale of the row as float8_e4m3fn",
    op_type="quantization",
    axes={"rows": "tokens", "cols": "channels"},
    inputs={"x": TensorSpec(shape=("rows", "cols")), "scale": TensorSpec(shape=("rows",), distribution="uniform:0.5:2")},
    outputs={"y": TensorSpec(shape=("rows", "cols"), dtype="float8_e4m3fn")},
    tolerance=Tolerance(required_match=0.99),
    flops="rows * cols",
    workloads=(at(512, 1024), at(300, 768)),
)


def reference(x, scale):
    return (x / scale[:, None]).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)
