"""Product of two matrices in any layout."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(m: int, k: int, n: int, set: str = "representative") -> Workload:
    return Workload(name=f"{m}x{k}x{n}", axes={"m": m, "k": k, "n": n}, set=set)


definition = Definition(
    name="any_product",
    description="out = a @ b",
    op_type="gemm",
    axes={"m": "rows of a", "k": "reduction", "n": "columns of b"},
    inputs={"a": TensorSpec(shape=("m", "k"), layout="any"), "b": TensorSpec(shape=("k", "n"), layout="any")},
    outputs={"out": TensorSpec(shape=("m", "n"))},
    tolerance=Tolerance(reduction="k"),
    flops="2 * m * k * n",
    workloads=(at(96, 128, 80), at(64, 200, 96), at(1, 1, 1, "odd"), at(31, 67, 17, "odd"), at(5, 129, 63, "odd")),
)


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b


def magnitude(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Terms cancel: rounding errors are relative to the sum of their absolute values."""
    return a.abs() @ b.abs()
