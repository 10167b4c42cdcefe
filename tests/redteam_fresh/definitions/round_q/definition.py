"""Quantisation with a fixed step, as a newcomer writes it: two sizes."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="round_q",
    description="q = x / 0.0625, rounded to the nearest integer (ties to even), clamped to -128 to 127",
    op_type="quant",
    axes={"rows": "tokens", "cols": "channels"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"q": TensorSpec(shape=("rows", "cols"), dtype="int8")},
    deterministic=True,
    flops="3 * rows * cols",
    workloads=(at(1024, 512), at(768, 640)),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return (x * 16).round().clamp(-128, 127).to(torch.int8)
