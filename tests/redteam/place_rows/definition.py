"""Rows put at their places: the way back of a routing, or a batch in a new order."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(tokens: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{tokens}x{cols}", axes={"tokens": tokens, "cols": cols}, set=set)


definition = Definition(
    name="place_rows",
    description="y[slot[t]] = x[t]; slot is a permutation",
    op_type="other",
    axes={"tokens": "tokens", "cols": "channels"},
    inputs={
        "x": TensorSpec(shape=("tokens", "cols")),
        "slot": TensorSpec(shape=("tokens",), dtype="int64", distribution="distinct:tokens"),
    },
    outputs={"y": TensorSpec(shape=("tokens", "cols"))},
    flops="tokens * cols",
    constraints=("slot is a permutation",),
    workloads=(at(1024, 128), at(700, 300), at(1, 1, "odd"), at(67, 17, "odd"), at(129, 130, "odd")),
)


def reference(x: torch.Tensor, slot: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(x).index_copy(0, slot, x)
