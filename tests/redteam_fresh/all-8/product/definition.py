"""Small product whose rows do not depend on the batch that they come in."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, depth: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{depth}x{cols}", axes={"rows": rows, "depth": depth, "cols": cols})


definition = Definition(
    name="product",
    description="y = x @ w; the bits of a row are the same in every batch",
    op_type="gemm",
    axes={"rows": "tokens", "depth": "inputs", "cols": "outputs"},
    inputs={"x": TensorSpec(shape=("rows", "depth")), "w": TensorSpec(shape=("depth", "cols"), role="weight")},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    batch_invariant="rows",
    deterministic=True,
    tolerance=Tolerance(reduction="depth"),
    flops="2 * rows * depth * cols",
    workloads=(at(48, 96, 80), at(24, 200, 60)),
)


def reference(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w


def magnitude(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Terms cancel: rounding errors are relative to the sum of their absolute values."""
    return x.abs() @ w.abs()
