"""Logarithm of softmax over the last axis: what a mask hides is minus infinity in the result too."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="log_softmax",
    description="y = x - logsumexp(x), row by row",
    op_type="softmax",
    axes={"rows": "tokens", "cols": "keys"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="5 * rows * cols",
    workloads=(at(1100, 1024), at(1, 1, "odd"), at(3, 17, "odd")),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.log_softmax(x, dim=-1)


def magnitude(x: torch.Tensor) -> torch.Tensor:
    """Sizes of the numbers whose difference a result is."""
    top = x.amax(-1, keepdim=True)
    return (top - x) + 1 + torch.exp(x - top).sum(-1, keepdim=True).log()
