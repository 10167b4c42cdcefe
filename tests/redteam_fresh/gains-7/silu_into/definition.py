"""SiLU into memory of the caller."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="silu_into",
    description="y = x / (1 + exp(-x))",
    op_type="activation",
    axes={"rows": "tokens", "cols": "channels"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    outputs_are="given",
    tolerance=Tolerance(),
    flops="4 * rows * cols",
    workloads=(at(64, 256), at(48, 320)),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.silu(x)
