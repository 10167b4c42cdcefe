"""Running sum along rows."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="cumsum",
    description="y[r, c] = x[r, 0] + ... + x[r, c]",
    op_type="scan",
    axes={"rows": "rows", "cols": "length"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="rows * cols",
    workloads=(at(128, 1024), at(64, 4096)),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.cumsum(-1)


def magnitude(x: torch.Tensor) -> torch.Tensor:
    return x.abs().cumsum(-1)
