"""Rotary position embedding of halves."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(tokens, heads):
    return Workload(name=f"{tokens}x{heads}", axes={"tokens": tokens, "heads": heads})


definition = Definition(
    name="rotary",
    description="rotates the halves of each head by position * theta^(-2 i / dim)",
    op_type="rope",
    axes={"tokens": "tokens", "heads": "heads", "dim": 64},
    inputs={
        "x": TensorSpec(shape=("tokens", "heads", "dim")),
        "position": TensorSpec(shape=("tokens",), dtype="int64"),
        "theta": ScalarSpec(value=10000.0),
    },
    outputs={"y": TensorSpec(shape=("tokens", "heads", "dim"))},
    tolerance=Tolerance(),
    flops="6 * tokens * heads * dim",
    workloads=(at(512, 16), at(300, 32)),
)


def _angles(x, position, theta):
    half = x.shape[-1] // 2
    rates = theta ** (-torch.arange(half, dtype=torch.float64, device=x.device) / half)
    return (position.to(torch.float64)[:, None] * rates)[:, None, :]


def reference(x, position, theta):
    angle = _angles(x, position, theta)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def magnitude(x, position, theta):
    first, second = x.abs().chunk(2, -1)
    size = first + second
    return torch.cat([size, size], -1)
