"""Rotary embedding of queries or keys: pairs (i, i + half) of each head are turned by the angle of their token."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(batch: int, heads: int, tokens: int, half: int, set: str = "representative") -> Workload:
    axes = {"batch": batch, "heads": heads, "tokens": tokens, "half": half}
    return Workload(name=f"{batch}x{heads}x{tokens}x{half}", axes=axes, set=set)


definition = Definition(
    name="rotary",
    description="y = x turned in pairs (i, i + half) by cos and sin of the token",
    op_type="rope",
    axes={"batch": "sequences", "heads": "heads", "tokens": "tokens", "half": "half of the head's width"},
    inputs={
        "x": TensorSpec(shape=("batch", "heads", "tokens", "2 * half"), layout="any"),
        "cos": TensorSpec(shape=("tokens", "half")),
        "sin": TensorSpec(shape=("tokens", "half")),
    },
    outputs={"y": TensorSpec(shape=("batch", "heads", "tokens", "2 * half"))},
    outputs_are="given",
    tolerance=Tolerance(reduction="2"),
    flops="6 * batch * heads * tokens * half",
    workloads=(
        at(2, 8, 128, 32),
        at(1, 4, 256, 32),
        at(1, 1, 1, 1, "odd"),
        at(2, 3, 5, 7, "odd"),
        at(3, 2, 17, 9, "odd"),
    ),
)


def reference(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    left, right = x.chunk(2, -1)
    return torch.cat([left * cos - right * sin, right * cos + left * sin], -1)


def magnitude(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    left, right = (part.abs() for part in x.chunk(2, -1))
    return torch.cat([left * cos.abs() + right * sin.abs(), right * cos.abs() + left * sin.abs()], -1)
