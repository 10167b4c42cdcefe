"""Red team's sort of rows that may hold infinities and NaN."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(rows: int, cols: int, set: str = "representative", kind: str = "normal") -> Workload:
    return Workload(name=f"{rows}x{cols}-{kind}", axes={"rows": rows, "cols": cols}, set=set, distribution=kind)


definition = Definition(
    name="sort_rows",
    description="y = x sorted along rows, ascending; NaN is larger than all",
    op_type="sort",
    axes={"rows": "rows", "cols": "values"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="rows * cols",
    workloads=(at(64, 1024), at(128, 500, kind="nonfinite")),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.sort(-1).values
