"""Softmax of attention scores with an additive mask, as frameworks expand it to (batch, heads, queries, keys)."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(batch: int, heads: int, queries: int, keys: int, set: str = "representative") -> Workload:
    axes = {"batch": batch, "heads": heads, "queries": queries, "keys": keys}
    return Workload(name=f"{batch}x{heads}x{queries}x{keys}", axes=axes, set=set)


definition = Definition(
    name="biased_softmax",
    description="y = softmax of scores + bias over keys",
    op_type="softmax",
    axes={"batch": "sequences", "heads": "heads", "queries": "queries", "keys": "keys"},
    inputs={
        "scores": TensorSpec(shape=("batch", "heads", "queries", "keys")),
        "bias": TensorSpec(shape=("batch", "heads", "queries", "keys"), layout="any", description="mask or positions' bias, often expanded"),
    },
    outputs={"y": TensorSpec(shape=("batch", "heads", "queries", "keys"))},
    outputs_are="given",
    tolerance=Tolerance(reduction="keys"),
    flops="6 * batch * heads * queries * keys",
    workloads=(at(2, 4, 64, 64), at(1, 2, 100, 128), at(2, 3, 5, 7, "odd")),
)


def reference(scores: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.softmax(scores + bias, -1)


def extra(scores: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    total = scores + bias
    most = scores.abs() + bias.abs() + (scores + bias).amax(-1, keepdim=True).abs()
    return 4 * most.nan_to_num(posinf=0.0) + 0 * total.nan_to_num(0.0, 0.0, 0.0)
