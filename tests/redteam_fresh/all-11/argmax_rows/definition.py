"""Red team's index of the largest element, where NaN counts as the largest."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(rows: int, cols: int, set: str = "representative", kind: str = "normal") -> Workload:
    return Workload(name=f"{rows}x{cols}-{kind}", axes={"rows": rows, "cols": cols}, set=set, distribution=kind)


definition = Definition(
    name="argmax_rows",
    description="index of the largest element of each row, the first of several; NaN is larger than all",
    op_type="reduction",
    axes={"rows": "rows", "cols": "values"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows",), dtype="int64")},
    flops="rows * cols",
    workloads=(
        at(64, 4096),
        at(512, 1000, kind="nonfinite"),
        at(1, 1, "odd"),
        at(17, 67, "odd", "nonfinite"),
        at(33, 129, "odd"),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    missing = x.isnan()
    first = missing.int().argmax(-1)
    return torch.where(
        missing.any(-1), first, x.nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf).argmax(-1)
    )
