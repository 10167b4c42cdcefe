"""RMSNorm of rows with a weight."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative", eps: float = 1e-6) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, scalars={"eps": eps}, set=set)


definition = Definition(
    name="rms_rows",
    description="y = x / sqrt(mean(x^2) + eps) * weight, row by row",
    op_type="norm",
    axes={"rows": "tokens", "cols": "hidden size"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols")),
        "weight": TensorSpec(shape=("cols",), role="weight"),
        "eps": ScalarSpec(value=1e-6),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="4 * rows * cols",
    workloads=(
        at(512, 768), at(256, 1000),
        at(1, 1, "odd"), at(3, 17, "odd", eps=0.5), at(9, 127, "odd"), at(5, 1025, "odd"),
    ),
)


def reference(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, eps)
