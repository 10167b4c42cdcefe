"""Rows of a sum over their largest magnitude, with bits that do not depend on the other rows."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="peak_norm",
    description="y = s / max(|s|) with s = x + r, row by row",
    op_type="norm",
    axes={"rows": "requests", "cols": "samples"},
    inputs={"x": TensorSpec(shape=("rows", "cols")), "r": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    batch_invariant="rows",
    flops="3 * rows * cols",
    workloads=(at(4, 60000), at(3, 50000)),
)


def reference(x: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
    total = x + r
    return total / total.abs().amax(-1, keepdim=True).clamp_min(1e-20)
