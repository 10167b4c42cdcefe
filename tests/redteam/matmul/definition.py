"""Red team's matrix product: a weight on the right, so that packing it is honest until the weight changes."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(m: int, n: int, k: int, set: str = "representative") -> Workload:
    return Workload(name=f"{m}x{n}x{k}", axes={"m": m, "n": n, "k": k}, set=set)


definition = Definition(
    name="matmul",
    description="c = a @ b",
    op_type="gemm",
    axes={"m": "rows of a", "n": "columns of b", "k": "reduction"},
    inputs={
        "a": TensorSpec(shape=("m", "k")),
        "b": TensorSpec(shape=("k", "n"), role="weight"),
    },
    outputs={"c": TensorSpec(shape=("m", "n"))},
    tolerance=Tolerance(reduction="k"),
    flops="2 * m * n * k",
    workloads=(
        at(128, 128, 128),
        at(64, 256, 192),
        at(2048, 2048, 2048, "full"),
        at(4096, 1024, 4096, "full"),
        at(1, 1, 1, "odd"),
        at(31, 17, 67, "odd"),
        at(65, 63, 129, "odd"),
    ),
)


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b


def magnitude(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Products cancel: rounding errors are relative to the sum of their absolute values."""
    return a.abs() @ b.abs()
