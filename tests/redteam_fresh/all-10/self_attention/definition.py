"""Attention of one head over a sequence with an additive mask."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(tokens: int, width: int, set: str = "representative") -> Workload:
    return Workload(name=f"{tokens}x{width}", axes={"tokens": tokens, "width": width}, set=set)


definition = Definition(
    name="self_attention",
    description="y = softmax(scale * q k^T) v",
    op_type="attention",
    axes={"tokens": "tokens", "width": "width of the head"},
    inputs={
        "q": TensorSpec(shape=("tokens", "width")),
        "k": TensorSpec(shape=("tokens", "width")),
        "v": TensorSpec(shape=("tokens", "width")),
        "scale": ScalarSpec(value=0.125),
    },
    outputs={"y": TensorSpec(shape=("tokens", "width"))},
    outputs_are="given",
    tolerance=Tolerance(reduction="width + 64"),
    flops="4 * tokens * tokens * width",
    workloads=(at(256, 64), at(200, 32), at(3, 17, "odd"), at(67, 9, "odd")),
)


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
    return torch.softmax(scale * (q @ k.T), -1) @ v


def magnitude(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
    return reference(q, k, v.abs(), scale)


def extra(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
    """Scores round by their terms, and move the exponentials."""
    most = (abs(scale) * (q.abs() @ k.abs().T)).amax(-1, keepdim=True)
    return (16 * most).expand(v.shape)
