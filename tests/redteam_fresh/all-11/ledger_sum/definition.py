"""Red team's sum of rows that may hold infinities and NaN."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative", kind: str = "normal") -> Workload:
    return Workload(name=f"{rows}x{cols}-{kind}", axes={"rows": rows, "cols": cols}, set=set, distribution=kind)


definition = Definition(
    name="ledger_sum",
    description="y = sum(x), row by row, with infinities and NaN as IEEE 754 has them",
    op_type="reduction",
    axes={"rows": "accounts", "cols": "entries"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows",))},
    tolerance=Tolerance(reduction="cols"),
    flops="rows * cols",
    workloads=(at(64, 4096), at(512, 1000, kind="nonfinite")),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.sum(-1)


def magnitude(x: torch.Tensor) -> torch.Tensor:
    """Terms cancel: rounding errors are relative to the sum of their absolute values."""
    return x.abs().sum(-1)
