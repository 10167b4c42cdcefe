"""SiLU of one large tensor."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="silu_large",
    description="y = x / (1 + exp(-x)) * scale, with a scale for each column",
    op_type="activation",
    axes={"rows": "tokens", "cols": "channels"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols")),
        "scale": TensorSpec(shape=("cols",), role="weight"),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="5 * rows * cols",
    workloads=(at(512, 1024), at(4096, 2112)),
)


def reference(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return x / (1 + torch.exp(-x)) * scale


def extra(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return 2 * x.abs()
