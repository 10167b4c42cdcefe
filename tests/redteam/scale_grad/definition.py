"""Backward of a learned scale: the gradient that comes may be a view, such as that of a sum."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="scale_grad",
    description="dx = grad * scale, row by row",
    op_type="elementwise",
    axes={"rows": "tokens", "cols": "channels"},
    inputs={
        "grad": TensorSpec(shape=("rows", "cols"), layout="any"),
        "scale": TensorSpec(shape=("cols",), role="weight"),
    },
    outputs={"dx": TensorSpec(shape=("rows", "cols"))},
    flops="rows * cols",
    workloads=(at(512, 1024), at(300, 1000), at(1, 1, "odd"), at(17, 67, "odd"), at(33, 129, "odd")),
)


def reference(grad: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return grad * scale
