"""Quantisation to float8."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows, cols):
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="to_fp8",
    description="y = clamp(x * scale, -448, 448) as float8_e4m3fn",
    op_type="quantization",
    axes={"rows": "tokens", "cols": "channels"},
    inputs={"x": TensorSpec(shape=("rows", "cols")), "scale": ScalarSpec(value=0.7)},
    outputs={"y": TensorSpec(shape=("rows", "cols"), dtype="float8_e4m3fn")},
    tolerance=Tolerance(),
    flops="rows * cols",
    workloads=(at(512, 1024), at(300, 768)),
)


def reference(x, scale):
    return (x * scale).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)
