"""Softmax of logits, whose spread a model's last layer has, in any layout."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="logits_softmax",
    description="y = exp(x - max(x)) / sum(exp(x - max(x))), row by row",
    op_type="softmax",
    axes={"rows": "tokens", "cols": "vocabulary"},
    inputs={"x": TensorSpec(shape=("rows", "cols"), layout="any", distribution="normal:0:4")},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="5 * rows * cols",
    workloads=(at(64, 1000), at(16, 8000), at(1, 1, "odd"), at(3, 17, "odd"), at(33, 130, "odd")),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)


def extra(x: torch.Tensor) -> torch.Tensor:
    """Rounding x - max(x) moves the exponential by as many roundoffs as the difference is large."""
    return 4 * (x.amax(-1, keepdim=True) - x).nan_to_num(posinf=0.0)
