"""RMSNorm over the last axis, as in Llama-style models."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="rmsnorm",
    description="y = x / sqrt(mean(x^2) + eps) * weight, row by row",
    op_type="norm",
    axes={"rows": "tokens", "cols": "hidden size"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols")),
        "weight": TensorSpec(shape=("cols",)),
        "eps": ScalarSpec(value=1e-6),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="4 * rows * cols",
    workloads=(
        at(4096, 4096),
        at(512, 8192),
        at(2048, 1000),
        at(1, 1, "odd"),
        at(3, 17, "odd"),
        at(5, 4097, "odd"),
        at(127, 1023, "odd"),
    ),
)


def reference(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, eps)
