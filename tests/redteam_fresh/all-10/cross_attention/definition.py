"""Attention of one head: queries of one sequence over the keys of another."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(queries: int, keys: int, width: int, set: str = "representative") -> Workload:
    axes = {"queries": queries, "keys": keys, "width": width}
    return Workload(name=f"{queries}x{keys}x{width}", axes=axes, set=set)


definition = Definition(
    name="cross_attention",
    description="y = softmax(scale * q k^T) v",
    op_type="attention",
    axes={"queries": "queries", "keys": "keys", "width": "width of the head"},
    inputs={
        "q": TensorSpec(shape=("queries", "width")),
        "k": TensorSpec(shape=("keys", "width")),
        "v": TensorSpec(shape=("keys", "width")),
        "scale": ScalarSpec(value=0.125),
    },
    outputs={"y": TensorSpec(shape=("queries", "width"))},
    outputs_are="given",
    tolerance=Tolerance(reduction="keys + width"),
    flops="4 * queries * keys * width",
    workloads=(at(256, 128, 32), at(64, 300, 64), at(3, 5, 17, "odd")),
)


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
    return torch.softmax(scale * (q @ k.T), -1) @ v


def magnitude(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
    return reference(q, k, v.abs(), scale)


def extra(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
    """Scores round by their terms, and move the exponentials."""
    most = (abs(scale) * (q.abs() @ k.abs().T)).amax(-1, keepdim=True)
    return (16 * most).expand(q.shape)
