"""Layer norm over the last axis, rows of any layout."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative", eps: float = 1e-5) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, scalars={"eps": eps}, set=set)


definition = Definition(
    name="layer_norm_hk",
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
        at(512, 768), at(256, 1024),
        at(1, 1, "odd"), at(3, 17, "odd", eps=0.5), at(9, 127, "odd"), at(5, 1025, "odd"),
    ),
)


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias, eps)


def magnitude(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """The mean is subtracted, and the bias may cancel."""
    scale = (x.var(-1, keepdim=True, unbiased=False) + eps).rsqrt()
    return (x.abs() + x.abs().mean(-1, keepdim=True)) * scale * weight.abs() + bias.abs()
