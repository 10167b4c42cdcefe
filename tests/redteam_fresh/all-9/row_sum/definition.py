"""Red team's row sum, whose rows may not depend on the batch that they are in."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="row_sum",
    description="y = sum(x), row by row, with bits that do not depend on the other rows",
    op_type="reduction",
    axes={"rows": "requests", "cols": "values"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows",))},
    batch_invariant="rows",
    tolerance=Tolerance(reduction="cols"),
    flops="rows * cols",
    workloads=(at(64, 4096), at(512, 1000), at(1, 1, "odd"), at(17, 67, "odd"), at(33, 129, "odd")),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.sum(-1)


def magnitude(x: torch.Tensor) -> torch.Tensor:
    """Terms cancel: rounding errors are relative to the sum of their absolute values."""
    return x.abs().sum(-1)
