"""Tokens mixed by a matrix, such as attention weights or a graph's propagation."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(tokens: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{tokens}x{cols}", axes={"tokens": tokens, "cols": cols}, set=set)


definition = Definition(
    name="mix",
    description="y = a @ x",
    op_type="matmul",
    axes={"tokens": "tokens", "cols": "channels"},
    inputs={"a": TensorSpec(shape=("tokens", "tokens")), "x": TensorSpec(shape=("tokens", "cols"))},
    outputs={"y": TensorSpec(shape=("tokens", "cols"))},
    tolerance=Tolerance(reduction="tokens"),
    flops="2 * tokens * tokens * cols",
    workloads=(at(256, 64), at(200, 96), at(1, 1, "odd"), at(17, 67, "odd"), at(129, 33, "odd")),
)


def reference(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return a @ x


def magnitude(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return a.abs() @ x.abs()
