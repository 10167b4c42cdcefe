"""RMS norm with a scale for each feature."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows: int, dim: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{dim}", axes={"rows": rows, "dim": dim}, set=set)


definition = Definition(
    name="rms_scale",
    description="y = x / sqrt(mean(x^2) + eps) * scale",
    op_type="norm",
    axes={"rows": "tokens", "dim": "features"},
    inputs={
        "x": TensorSpec(shape=("rows", "dim")),
        "scale": TensorSpec(shape=("dim",), role="weight", distribution="normal:1:0.1"),
        "eps": ScalarSpec(value=1e-6),
    },
    outputs={"y": TensorSpec(shape=("rows", "dim"))},
    tolerance=Tolerance(reduction="dim"),
    flops="5 * rows * dim",
    workloads=(at(512, 768), at(300, 2048)),
)


def reference(x: torch.Tensor, scale: torch.Tensor, eps: float) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * scale
