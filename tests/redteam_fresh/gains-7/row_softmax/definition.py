"""Softmax over rows, as a newcomer writes it down: two sizes, no odd ones."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="row_softmax",
    description="y = exp(x - max(x)) / sum(exp(x - max(x))), row by row",
    op_type="softmax",
    axes={"rows": "tokens", "cols": "keys"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="5 * rows * cols",
    workloads=(at(256, 4096), at(192, 5120)),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)


def extra(x: torch.Tensor) -> torch.Tensor:
    """Rounding x - max(x) moves the exponential by as many roundoffs as the difference is large."""
    return 4 * (x.amax(-1, keepdim=True) - x).nan_to_num(posinf=0.0)
