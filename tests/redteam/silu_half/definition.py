"""SiLU in bfloat16."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, dtype="bfloat16", set=set)


definition = Definition(
    name="silu_half",
    description="y = x * sigmoid(x)",
    op_type="activation",
    axes={"rows": "tokens", "cols": "channels"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(),
    flops="4 * rows * cols",
    workloads=(at(256, 1024), at(100, 1000), at(1, 1, "odd"), at(17, 67, "odd"), at(33, 129, "odd")),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.silu(x)
