"""General product of BLAS: out = alpha * a @ b + beta * c."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(m: int, k: int, n: int, set: str = "representative") -> Workload:
    return Workload(name=f"{m}x{k}x{n}", axes={"m": m, "k": k, "n": n}, set=set)


definition = Definition(
    name="residual_product",
    description="out = alpha * a @ b + beta * c",
    op_type="gemm",
    axes={"m": "rows of a", "k": "reduction", "n": "columns of b"},
    inputs={
        "a": TensorSpec(shape=("m", "k")),
        "b": TensorSpec(shape=("k", "n")),
        "c": TensorSpec(shape=("m", "n")),
        "alpha": ScalarSpec(value=1.0, between=(-100.0, 100.0)),
        "beta": ScalarSpec(value=0.5, between=(-100.0, 100.0)),
    },
    outputs={"out": TensorSpec(shape=("m", "n"))},
    tolerance=Tolerance(reduction="k"),
    flops="2 * m * k * n",
    workloads=(at(96, 128, 96), at(64, 200, 80), at(1, 1, 1, "odd"), at(31, 67, 17, "odd"), at(5, 129, 63, "odd")),
)


def reference(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, alpha: float, beta: float) -> torch.Tensor:
    return alpha * (a @ b) + beta * c


def magnitude(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, alpha: float, beta: float) -> torch.Tensor:
    """Terms cancel: rounding errors are relative to the sum of their absolute values."""
    return abs(alpha) * (a.abs() @ b.abs()) + abs(beta) * c.abs()
