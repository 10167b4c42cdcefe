"""Red team's rows times their scale, as bfloat16, of numbers that may not be finite."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(rows: int, cols: int, set: str = "representative", kind: str = "normal") -> Workload:
    return Workload(name=f"{rows}x{cols}-{kind}", axes={"rows": rows, "cols": cols}, set=set, distribution=kind)


definition = Definition(
    name="scale_cast",
    description="y = x * scale of the row, rounded to bfloat16",
    op_type="elementwise",
    axes={"rows": "tokens", "cols": "channels"},
    inputs={"x": TensorSpec(shape=("rows", "cols")), "scale": TensorSpec(shape=("rows",))},
    outputs={"y": TensorSpec(shape=("rows", "cols"), dtype="bfloat16")},
    flops="rows * cols",
    workloads=(at(64, 1024), at(128, 1000, kind="nonfinite")),
)


def reference(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return (x * scale[:, None]).to(torch.bfloat16)
