"""RMSNorm in bfloat16, which is timed, and in float16 and float32, which callers pass too."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative", dtype: str = "bfloat16") -> Workload:
    short = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}[dtype]
    return Workload(name=f"{rows}x{cols}-{short}", axes={"rows": rows, "cols": cols}, dtype=dtype, set=set)


definition = Definition(
    name="rms_types",
    description="y = x / sqrt(mean(x^2) + eps) * weight, row by row, in bfloat16, float16 or float32",
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
        at(512, 768), at(256, 1024),
        at(1, 1, "odd"), at(3, 17, "odd"), at(9, 127, "odd"),
        at(3, 2048, "odd", "float16"), at(6, 1001, "odd", "float16"), at(2, 300, "odd", "float32"),
    ),
)


def reference(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * weight.float()).to(x.dtype)
