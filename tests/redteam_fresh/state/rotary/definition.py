"""Rotary embedding of pairs of neighbours, as a newcomer writes it; one sentence says what callers promise."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload

definition = Definition(
    name="rotary",
    description="each pair of neighbours in a row is turned by the row's angles",
    axes={"rows": "tokens", "pairs": "half of the width"},
    inputs={
        "x": TensorSpec(shape=("rows", "2 * pairs")),
        "cos": TensorSpec(shape=("rows", "pairs")),
        "sin": TensorSpec(shape=("rows", "pairs")),
    },
    outputs={"y": TensorSpec(shape=("rows", "2 * pairs"))},
    flops="6 * rows * pairs",
    workloads=(
        Workload(name="512x64", axes={"rows": 512, "pairs": 64}),
        Workload(name="4096x128", axes={"rows": 4096, "pairs": 128}),
    ),
    constraints=("cos and sin belong to the same angles",),
)


def reference(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    even, odd = x[:, 0::2], x[:, 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


def magnitude(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    even, odd, cos, sin = x[:, 0::2].abs(), x[:, 1::2].abs(), cos.abs(), sin.abs()
    return torch.stack((even * cos + odd * sin, even * sin + odd * cos), -1).flatten(-2)
