"""rotary for an attack on the gate."""

from __future__ import annotations

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload



def at(tokens, dim):
    return Workload(name=f"{tokens}x{dim}", axes={"tokens": tokens, "dim": dim})


definition = Definition(
    name="rotary",
    description="rotates the halves of each token's vector by position times frequency",
    op_type="rope",
    axes={"tokens": "tokens", "dim": "head size"},
    inputs={
        "x": TensorSpec(shape=("tokens", "dim")),
        "positions": TensorSpec(shape=("tokens",), dtype="int64"),
        "base": ScalarSpec(value=10000.0),
    },
    outputs={"y": TensorSpec(shape=("tokens", "dim"))},
    flops="6 * tokens * dim",
    constraints=("the head size is even",),
    workloads=(at(128, 64), at(512, 128)),
)


def _angles(x, positions, base):
    half = x.shape[-1] // 2
    powers = torch.arange(half, dtype=torch.float64, device=x.device) / half
    return positions.double()[:, None] * torch.pow(torch.tensor(float(base), dtype=torch.float64), -powers)


def reference(x, positions, base):
    angle = _angles(x, positions, base)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def magnitude(x, positions, base):
    first, second = x.abs().chunk(2, dim=-1)
    return torch.cat([first + second, first + second], dim=-1)
