"""Rotary embedding by positions, as a newcomer writes it: its own inputs, two sizes."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(tokens: int, half: int) -> Workload:
    return Workload(name=f"{tokens}x{half}", axes={"tokens": tokens, "half": half, "length": 4096})


definition = Definition(
    name="rope_rows",
    description="rotates the pairs (x[t, i], x[t, half + i]) by the angle of the token's position",
    op_type="rope",
    axes={"tokens": "tokens", "half": "half of a head", "length": "positions in the tables"},
    inputs={
        "x": TensorSpec(shape=("tokens", "2 * half")),
        "cos": TensorSpec(shape=("length", "half")),
        "sin": TensorSpec(shape=("length", "half")),
        "positions": TensorSpec(shape=("tokens",), dtype="int64"),
    },
    outputs={"y": TensorSpec(shape=("tokens", "2 * half"))},
    outputs_are="given",
    flops="6 * tokens * half",
    workloads=(at(2048, 64), at(1024, 128)),
)


def inputs(workload, generator, device):
    tokens, half, length = (workload.axes[name] for name in ("tokens", "half", "length"))
    angles = torch.rand(length, half, generator=generator, device=device) * 6.28
    start = torch.randint(0, length - tokens, (), generator=generator, device=device)
    return {
        "x": torch.randn(tokens, 2 * half, generator=generator, device=device),
        "cos": angles.cos(),
        "sin": angles.sin(),
        "positions": start + torch.arange(tokens, device=device),
    }


def reference(x, cos, sin, positions):
    half = x.shape[1] // 2
    c, s, a, b = cos[positions], sin[positions], x[:, :half], x[:, half:]
    return torch.cat([a * c - b * s, b * c + a * s], dim=1)


def magnitude(x, cos, sin, positions):
    half = x.shape[1] // 2
    c, s, a, b = cos[positions].abs(), sin[positions].abs(), x[:, :half].abs(), x[:, half:].abs()
    return torch.cat([a * c + b * s, b * c + a * s], dim=1)
