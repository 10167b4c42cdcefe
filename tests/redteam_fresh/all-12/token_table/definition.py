"""Embedding of tokens: a row of a table for each id."""

import torch
from torch.nn import functional

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(tokens: int, vocab: int, dim: int, set: str = "representative") -> Workload:
    axes = {"tokens": tokens, "vocab": vocab, "dim": dim}
    return Workload(name=f"{tokens}x{dim}-of-{vocab}", axes=axes, set=set)


definition = Definition(
    name="token_table",
    description="y[t] = table[ids[t]]",
    op_type="embedding",
    axes={"tokens": "tokens", "vocab": "rows of the table", "dim": "width"},
    inputs={
        "table": TensorSpec(shape=("vocab", "dim"), role="weight"),
        "ids": TensorSpec(shape=("tokens",), dtype="int32", distribution="integers:0:vocab"),
    },
    outputs={"y": TensorSpec(shape=("tokens", "dim"))},
    flops="0",
    workloads=(at(2048, 8000, 128), at(512, 3000, 320)),
)


def reference(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    return functional.embedding(ids, table)
