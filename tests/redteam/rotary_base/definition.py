"""Rotary embedding whose base is a number of the call, as models change it for longer contexts."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(tokens: int, heads: int, dim: int, set: str = "representative") -> Workload:
    return Workload(name=f"{tokens}x{heads}x{dim}", axes={"tokens": tokens, "heads": heads, "dim": dim}, set=set)


definition = Definition(
    name="rotary_base",
    description="y = x turned in pairs (i, i + dim / 2) by position * base^(-2 i / dim)",
    op_type="rope",
    axes={"tokens": "tokens", "heads": "heads", "dim": "width of a head"},
    inputs={
        "x": TensorSpec(shape=("tokens", "heads", "dim")),
        "positions": TensorSpec(shape=("tokens",), dtype="int64", distribution="integers:0:4096"),
        "base": ScalarSpec(value=10000.0),
    },
    outputs={"y": TensorSpec(shape=("tokens", "heads", "dim"))},
    tolerance=Tolerance(reduction="2"),
    flops="6 * tokens * heads * dim",
    constraints=("dim % 2 == 0",),
    workloads=(at(256, 8, 64), at(100, 12, 128)),
)


def turns(x: torch.Tensor, positions: torch.Tensor, base: float) -> torch.Tensor:
    dim = x.shape[-1]
    steps = torch.arange(0, dim, 2, device=x.device).to(x.dtype) / dim
    return (positions[:, None].to(x.dtype) * base**-steps)[:, None]


def reference(x: torch.Tensor, positions: torch.Tensor, base: float) -> torch.Tensor:
    angles = turns(x, positions, base)
    cos, sin = angles.cos(), angles.sin()
    left, right = x.chunk(2, -1)
    return torch.cat([left * cos - right * sin, right * cos + left * sin], -1)


def magnitude(x: torch.Tensor, positions: torch.Tensor, base: float) -> torch.Tensor:
    left, right = (part.abs() for part in x.chunk(2, -1))
    return torch.cat([left + right, left + right], -1)


def extra(x: torch.Tensor, positions: torch.Tensor, base: float) -> torch.Tensor:
    """An angle's rounding error is as large as the angle, and that of its power a few times as large."""
    return 16 * turns(x, positions, base).repeat(1, 1, 2).expand(x.shape)
