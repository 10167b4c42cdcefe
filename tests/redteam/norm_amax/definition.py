"""RMS norm with the largest size of each row's results, by which a quantisation scales them."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="norm_amax",
    description="y = x / sqrt(mean(x^2) + eps) * weight, row by row, and the largest |y| of each row",
    op_type="norm",
    axes={"rows": "tokens", "cols": "width"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols")),
        "weight": TensorSpec(shape=("cols",), role="weight", distribution="normal:1:0.1"),
        "eps": ScalarSpec(value=1e-5),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols")), "amax": TensorSpec(shape=("rows",))},
    outputs_are="given",
    tolerance=Tolerance(reduction="cols"),
    flops="6 * rows * cols",
    workloads=(at(64, 1024), at(32, 4096), at(3, 17, "odd"), at(67, 129, "odd")),
)


def reference(x: torch.Tensor, weight: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    y = torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, eps)
    return y, y.abs().amax(-1)
