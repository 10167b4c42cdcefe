"""RMS norm of rows without a weight, as of queries' heads; callers pass slices of wider tensors."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="row_norm",
    description="y = x / sqrt(mean(x^2) + eps), row by row",
    op_type="norm",
    axes={"rows": "tokens", "cols": "width"},
    inputs={"x": TensorSpec(shape=("rows", "cols"), layout="any"), "eps": ScalarSpec(value=1e-5)},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    outputs_are="given",
    tolerance=Tolerance(reduction="cols"),
    flops="4 * rows * cols",
    workloads=(at(512, 256), at(256, 1000), at(3, 17, "odd"), at(67, 129, "odd")),
)


def reference(x: torch.Tensor, eps: float) -> torch.Tensor:
    return torch.nn.functional.rms_norm(x, (x.shape[-1],), None, eps)
