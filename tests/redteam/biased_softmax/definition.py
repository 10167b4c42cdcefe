"""Attention probabilities: softmax of scores with an additive mask that all heads share."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(heads: int, queries: int, keys: int, set: str = "representative") -> Workload:
    axes = {"heads": heads, "queries": queries, "keys": keys}
    return Workload(name=f"{heads}x{queries}x{keys}", axes=axes, set=set)


definition = Definition(
    name="biased_softmax",
    description="y = softmax(scores + mask), query by query; the mask is 0 or minus infinity, or any bias",
    op_type="softmax",
    axes={"heads": "heads", "queries": "queries", "keys": "keys"},
    inputs={
        "scores": TensorSpec(shape=("heads", "queries", "keys")),
        "mask": TensorSpec(shape=("queries", "keys")),
    },
    outputs={"y": TensorSpec(shape=("heads", "queries", "keys"))},
    tolerance=Tolerance(reduction="keys"),
    flops="6 * heads * queries * keys",
    constraints=("each row of mask has at least one finite element",),
    workloads=(
        at(8, 128, 128), at(4, 200, 300),
        at(1, 1, 1, "odd"), at(3, 17, 17, "odd"), at(2, 67, 129, "odd"),
    ),
)


def reference(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.softmax(scores + mask, dim=-1)


def extra(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Rounding a logit moves the exponential by as many roundoffs as the logit, or the difference, is large."""
    x = scores + mask
    size = (scores.abs() + mask.abs()).nan_to_num(posinf=0.0)
    top = size.amax(-1, keepdim=True)
    return 4 * ((x.amax(-1, keepdim=True) - x).nan_to_num(posinf=0.0) + size + top)
