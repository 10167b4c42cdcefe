"""to_fp8 for an attack on the gate."""

from __future__ import annotations

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload



def at(rows, cols):
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="to_fp8",
    description="x as float8_e4m3fn, clamped to 448",
    op_type="quantization",
    axes={"rows": "tokens", "cols": "features"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"), dtype="float8_e4m3fn")},
    tolerance=Tolerance(required_match=0.99),
    flops="2 * rows * cols",
    workloads=(at(64, 256), at(32, 1000)),
)


def reference(x):
    return x.clamp(-448, 448).to(torch.float8_e4m3fn)
