"""Linear layer on rows of any layout."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, k: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{k}x{cols}", axes={"rows": rows, "k": k, "cols": cols}, set=set)


definition = Definition(
    name="affine",
    description="y = x @ w + bias",
    op_type="gemm",
    axes={"rows": "rows", "k": "features", "cols": "columns"},
    inputs={
        "x": TensorSpec(shape=("rows", "k"), layout="any"),
        "w": TensorSpec(shape=("k", "cols"), role="weight"),
        "bias": TensorSpec(shape=("cols",), role="weight"),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="k"),
    flops="2 * rows * k * cols",
    workloads=(at(256, 320, 200), at(100, 700, 256)),
)


def reference(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return x @ w + bias


def magnitude(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Terms cancel: rounding errors are relative to the sum of their absolute values."""
    return x.abs() @ w.abs() + bias.abs()
