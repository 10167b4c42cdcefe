"""Mean of each row in bfloat16, as pooled features have it."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, dtype="bfloat16", set=set)


definition = Definition(
    name="row_lse_half",
    description="y = mean of x^2, row by row",
    op_type="reduction",
    axes={"rows": "tokens", "cols": "channels"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows",))},
    tolerance=Tolerance(reduction="cols"),
    flops="2 * rows * cols",
    workloads=(at(256, 1024), at(100, 1000), at(1, 1, "odd"), at(17, 67, "odd"), at(33, 129, "odd")),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return (x.float() if x.dtype == torch.bfloat16 else x).square().mean(-1).to(x.dtype)
