"""Rotary embedding by a table: each token's halves are turned by the angles of its position."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(tokens: int, heads: int, context: int, set: str = "representative") -> Workload:
    axes = {"tokens": tokens, "heads": heads, "context": context}
    return Workload(name=f"{tokens}x{heads}-of-{context}", axes=axes, set=set)


definition = Definition(
    name="rope_table",
    description="turns the halves of each head by row position[t] of a table of cosines, then sines",
    op_type="rope",
    axes={"tokens": "tokens", "heads": "heads", "context": "positions of the table", "dim": 64},
    inputs={
        "x": TensorSpec(shape=("tokens", "heads", "dim")),
        "table": TensorSpec(shape=("context", "dim"), description="cosines of a position, then its sines"),
        "position": TensorSpec(shape=("tokens",), dtype="int64", distribution="integers:0:context"),
    },
    outputs={"y": TensorSpec(shape=("tokens", "heads", "dim"))},
    tolerance=Tolerance(),
    flops="6 * tokens * heads * dim",
    workloads=(
        at(512, 8, 4096), at(300, 12, 8192),
        at(1, 1, 1, "odd"), at(17, 2, 131, "odd"), at(67, 3, 1000, "odd"),
    ),
)


def reference(x: torch.Tensor, table: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
    cos, sin = table[position][:, None, :].chunk(2, -1)
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def magnitude(x: torch.Tensor, table: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
    """Two products may cancel."""
    cos, sin = table.abs()[position][:, None, :].chunk(2, -1)
    first, second = x.abs().chunk(2, -1)
    return torch.cat([first * cos + second * sin, second * cos + first * sin], -1)
