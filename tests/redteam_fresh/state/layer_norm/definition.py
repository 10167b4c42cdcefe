"""Layer norm over the last axis, whose rows may lie anywhere, with a weight and a bias."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative", eps: float = 1e-5) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, scalars={"eps": eps}, set=set)


definition = Definition(
    name="layer_norm",
    description="y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, row by row",
    op_type="norm",
    axes={"rows": "tokens", "cols": "hidden size"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols"), layout="any"),
        "weight": TensorSpec(shape=("cols",), role="weight"),
        "bias": TensorSpec(shape=("cols",), role="weight"),
        "eps": ScalarSpec(value=1e-5),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="8 * rows * cols",
    workloads=(
        at(512, 1024),
        at(1536, 1024),
        at(2048, 2064),
        at(2048, 1024, eps=1e-6),
        at(2112, 2064),
        at(1, 1, "odd", eps=0.5),
        at(1, 777, "odd"),
        at(3, 17, "odd", eps=0.3),
        at(9, 127, "odd"),
        at(5, 1025, "odd", eps=1e-3),
    ),
)


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias, eps)


def magnitude(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """The mean cancels against x, and the bias against the product."""
    scale = torch.rsqrt(x.var(-1, keepdim=True, unbiased=False) + eps)
    size = x.abs() + x.abs().mean(-1, keepdim=True)
    return size * scale * weight.abs() + bias.abs()
