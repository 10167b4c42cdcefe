"""quantize for an attack on the gate."""

from __future__ import annotations

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload



def at(rows, cols):
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="quantize",
    description="int8 codes: round to nearest, ties to even, clamped to -128 and 127",
    op_type="quantization",
    axes={"rows": "tokens", "cols": "features"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"q": TensorSpec(shape=("rows", "cols"), dtype="int8")},
    flops="2 * rows * cols",
    workloads=(at(32, 64), at(16, 200)),
)


def reference(x):
    return x.round().clamp(-128, 127).to(torch.int8)
