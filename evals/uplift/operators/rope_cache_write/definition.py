"""Rotary embedding of queries and keys, with keys and values written to the slots of a cache."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(
    tokens: int, heads: int, groups: int, half: int, dtype: str = "bfloat16", set: str = "representative"
) -> Workload:
    short = {"bfloat16": "bf16", "float32": "fp32"}[dtype]
    axes = {"tokens": tokens, "heads": heads, "groups": groups, "half": half}
    return Workload(name=f"{tokens}x{heads}-{groups}x{2 * half}-{short}", axes=axes, dtype=dtype, set=set)


definition = Definition(
    name="rope_cache_write",
    description="queries[t] = rotate(q[t], t), keys[slots[t]] = rotate(k[t], t) and values[slots[t]] = v[t], where "
    "rotate(x, t) maps (a, b), the halves of a head, to (a cos[t] - b sin[t], b cos[t] + a sin[t])",
    op_type="rope",
    axes={
        "tokens": "tokens, and slots of the cache",
        "heads": "heads of queries",
        "groups": "heads of keys and of values",
        "half": "half of a head's size",
    },
    inputs={
        "q": TensorSpec(shape=("tokens", "heads", "2 * half")),
        "k": TensorSpec(shape=("tokens", "groups", "2 * half")),
        "v": TensorSpec(shape=("tokens", "groups", "2 * half")),
        "cos": TensorSpec(shape=("tokens", "half"), dtype="float32"),
        "sin": TensorSpec(shape=("tokens", "half"), dtype="float32"),
        "slots": TensorSpec(shape=("tokens",), dtype="int64", description="a permutation of all slots"),
    },
    outputs={
        "queries": TensorSpec(shape=("tokens", "heads", "2 * half")),
        "keys": TensorSpec(shape=("tokens", "groups", "2 * half")),
        "values": TensorSpec(shape=("tokens", "groups", "2 * half")),
    },
    tolerance=Tolerance(reduction="2"),
    flops="6 * tokens * (heads + groups) * half",
    workloads=(
        at(8192, 32, 8, 64),
        at(128, 64, 8, 64),
        at(4096, 16, 16, 32),
        at(2048, 24, 2, 128, "float32"),
        at(1, 1, 1, 1, set="odd"),
        at(7, 3, 1, 5, "float32", "odd"),
        at(33, 12, 3, 40, set="odd"),
        at(130, 5, 5, 33, set="odd"),
    ),
    constraints=("slots is a permutation of 0 to tokens - 1",),
)


def inputs(workload: Workload, generator: torch.Generator, device: str) -> dict[str, torch.Tensor]:
    """Heads of both signs, angles of positions as in a language model, and slots in random order."""
    tokens, heads, groups, half = (workload.axes[name] for name in ("tokens", "heads", "groups", "half"))
    dtype = getattr(torch, workload.dtype)
    positions = torch.randint(0, 32768, (tokens, 1), generator=generator, device=device)
    frequencies = 10000.0 ** (-torch.arange(half, device=device, dtype=torch.float64) / half)
    angles = positions * frequencies

    def draw(count: int) -> torch.Tensor:
        return torch.randn((tokens, count, 2 * half), generator=generator, device=device).to(dtype)

    return {
        "q": draw(heads),
        "k": draw(groups),
        "v": draw(groups),
        "cos": angles.cos().float(),
        "sin": angles.sin().float(),
        "slots": torch.randperm(tokens, generator=generator, device=device),
    }


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, sign: int = -1) -> torch.Tensor:
    """Rotate the halves of each head; a sign of 1 adds all products, as a bound needs it."""
    a, b = x.to(cos.dtype).chunk(2, dim=-1)
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return torch.cat((a * cos + sign * b * sin, b * cos + a * sin), dim=-1).to(x.dtype)


def reference(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, slots: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    keys, values = torch.empty_like(k), torch.empty_like(v)
    keys[slots], values[slots] = rotate(k, cos, sin), v
    return rotate(q, cos, sin), keys, values


def magnitude(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, slots: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Products of both signs cancel."""
    keys, values = torch.empty_like(k), torch.empty_like(v)
    keys[slots], values[slots] = rotate(k.abs(), cos.abs(), sin.abs(), 1), v.abs()
    return rotate(q.abs(), cos.abs(), sin.abs(), 1), keys, values
