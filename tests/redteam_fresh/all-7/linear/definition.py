"""Linear layer whose weights a kernel may keep in a form of its own, as long as that follows every update."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(m: int, k: int, n: int) -> Workload:
    return Workload(name=f"{m}x{k}x{n}", axes={"m": m, "k": k, "n": n})


definition = Definition(
    name="linear",
    description="y = x @ w",
    op_type="gemm",
    axes={"m": "tokens", "k": "inputs", "n": "outputs"},
    inputs={"x": TensorSpec(shape=("m", "k")), "w": TensorSpec(shape=("k", "n"), role="weight")},
    outputs={"y": TensorSpec(shape=("m", "n"))},
    tolerance=Tolerance(reduction="k"),
    flops="2 * m * k * n",
    workloads=(at(32, 512, 1536), at(8, 1024, 512)),
)


def reference(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w


def magnitude(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Terms cancel: rounding errors are relative to the sum of their absolute values."""
    return x.abs() @ w.abs()
