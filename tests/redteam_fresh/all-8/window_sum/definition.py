"""Sum of a part of each row, which is cut where the row ends."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="window_sum",
    description="y = sum of x[:, start : start + length] along each row; what lies beyond a row is left out",
    op_type="reduction",
    axes={"rows": "series", "cols": "steps"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols")),
        "start": ScalarSpec(type="int", value=5, between=(0, 4096)),
        "length": ScalarSpec(type="int", value=48, between=(0, 4096)),
    },
    outputs={"y": TensorSpec(shape=("rows",))},
    tolerance=Tolerance(reduction="cols"),
    flops="rows * cols",
    workloads=(at(80, 400), at(200, 250)),
)


def reference(x: torch.Tensor, start: int, length: int) -> torch.Tensor:
    return x[:, start : start + length].sum(-1)


def magnitude(x: torch.Tensor, start: int, length: int) -> torch.Tensor:
    """Terms cancel: rounding errors are relative to the sum of their absolute values."""
    return x[:, start : start + length].abs().sum(-1)
