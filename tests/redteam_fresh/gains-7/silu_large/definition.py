"""SiLU into memory of the caller, at sizes beside which a message is short."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="silu_large",
    description="y = x / (1 + exp(-x))",
    op_type="activation",
    axes={"rows": "tokens", "cols": "channels"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    outputs_are="given",
    tolerance=Tolerance(),
    flops="4 * rows * cols",
    workloads=(at(640, 1024), at(480, 1280)),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.silu(x)
