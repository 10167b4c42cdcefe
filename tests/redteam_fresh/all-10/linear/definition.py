"""Product with a weight, which callers may pass transposed."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, k: int, n: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{k}x{n}", axes={"rows": rows, "k": k, "n": n}, set=set)


definition = Definition(
    name="linear",
    description="y = x w",
    op_type="gemm",
    axes={"rows": "tokens", "k": "inputs", "n": "outputs"},
    inputs={
        "x": TensorSpec(shape=("rows", "k")),
        "w": TensorSpec(shape=("k", "n"), role="weight", layout="any"),
    },
    outputs={"y": TensorSpec(shape=("rows", "n"))},
    outputs_are="given",
    tolerance=Tolerance(reduction="k"),
    flops="2 * rows * k * n",
    workloads=(at(32, 256, 256), at(16, 300, 128), at(3, 17, 5, "odd"), at(5, 33, 33, "odd")),
)


def reference(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w


def magnitude(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x.abs() @ w.abs()
