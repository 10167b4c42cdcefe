"""Red team's RMSNorm: small, with a weight, and with rows that need not lie one after the other."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative", dtype: str = "float32", eps: float = 1e-6) -> Workload:
    return Workload(
        name=f"{rows}x{cols}-{dtype}",
        axes={"rows": rows, "cols": cols},
        dtype=dtype,
        scalars={"eps": eps},
        set=set,
    )


definition = Definition(
    name="rmsnorm",
    description="y = x / sqrt(mean(x^2) + eps) * weight, row by row",
    op_type="norm",
    axes={"rows": "tokens", "cols": "hidden size"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols"), layout="any"),
        "weight": TensorSpec(shape=("cols",), role="weight"),
        "eps": ScalarSpec(value=1e-6),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="4 * rows * cols",
    workloads=(
        at(8, 32768),
        at(6, 30000),
        at(4096, 4096, "full"),
        at(2048, 8192, "full", "bfloat16"),
        at(1, 1, "odd"),
        at(3, 17, "odd", eps=0.5),
        at(9, 127, "odd"),
        at(5, 1025, "odd"),
    ),
)


def reference(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, eps)
