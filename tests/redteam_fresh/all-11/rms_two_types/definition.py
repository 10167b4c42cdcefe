"""Red team's RMS norm, in two types at two sizes."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, dtype: str, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}-{dtype}", axes={"rows": rows, "cols": cols}, dtype=dtype, set=set)


definition = Definition(
    name="rms_two_types",
    description="y = x / sqrt(mean(x^2) + eps), row by row",
    op_type="norm",
    axes={"rows": "tokens", "cols": "channels"},
    inputs={"x": TensorSpec(shape=("rows", "cols")), "eps": ScalarSpec(value=1e-5)},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="4 * rows * cols",
    workloads=(
        at(64, 1024, "float32"),
        at(128, 2048, "bfloat16"),
        at(17, 67, "float32", "odd"),
        at(33, 129, "bfloat16", "odd"),
    ),
)


def reference(x: torch.Tensor, eps: float) -> torch.Tensor:
    wide = x if x.dtype == torch.float64 else x.float()
    return (wide / (wide.square().mean(-1, keepdim=True) + eps).sqrt()).to(x.dtype)
