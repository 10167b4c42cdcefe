"""Softmax over the keys that a mask allows, as attention under any mask needs it."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="allowed_softmax",
    description="y = softmax of x over the elements of a row where mask is true; zeros elsewhere, and in rows without any",
    op_type="softmax",
    axes={"rows": "queries", "cols": "keys"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols")),
        "mask": TensorSpec(shape=("rows", "cols"), dtype="bool", description="true: the query sees the key"),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="5 * rows * cols",
    workloads=(at(256, 256), at(300, 512), at(1, 1, "odd"), at(3, 17, "odd"), at(67, 129, "odd")),
)


def _below(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Allowed elements less the largest of them; minus infinity elsewhere."""
    low = x.masked_fill(~mask, float("-inf"))
    top = low.amax(-1, keepdim=True)
    return low - torch.where(top == float("-inf"), 0.0, top)


def reference(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    weights = torch.exp(_below(x, mask))
    return weights / weights.sum(-1, keepdim=True).clamp(min=2.0**-100)


def extra(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Rounding x - max(x) moves the exponential by as many roundoffs as the difference is large."""
    return 4 * (-_below(x, mask)).nan_to_num(posinf=0.0)
