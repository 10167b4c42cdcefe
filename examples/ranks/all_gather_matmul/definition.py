"""All-gather and product: a column-parallel layer whose input is shared out by tokens (sequence parallelism)."""

import torch

from warpsmith import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, k: int, cols: int, set: str = "representative", dtype: str = "bfloat16") -> Workload:
    """Return the workload of a size."""
    short = {"float32": "fp32", "bfloat16": "bf16"}[dtype]
    axes = {"rows": rows, "k": k, "cols": cols}
    return Workload(name=f"{rows}x{k}x{cols}-{short}", axes=axes, set=set, dtype=dtype)


definition = Definition(
    name="all_gather_matmul",
    description="y = x @ weight, with the rows of x and the columns of weight and y shared out",
    op_type="gemm",
    ranks=2,
    axes={"rows": "tokens", "k": "hidden size", "cols": "columns of all ranks' weights"},
    inputs={
        "x": TensorSpec(shape=("rows", "k"), shard_axis="rows"),
        "weight": TensorSpec(shape=("k", "cols"), shard_axis="cols", role="weight"),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"), shard_axis="cols")},
    tolerance=Tolerance(reduction="k"),
    flops="2 * rows * k * cols",
    workloads=(
        at(1024, 8192, 8192),
        at(4096, 8192, 8192),
        at(8192, 8192, 8192, "full"),
        at(4096, 8192, 28672, "full"),
        at(4, 8, 12, "odd", "float32"),
        at(60, 129, 36, "odd", "float32"),
        at(252, 264, 72, "odd"),
    ),
)


def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return the whole product."""
    return x @ weight


def magnitude(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return the scale of rounding errors: terms of the sum may cancel, and their errors stay."""
    return x.abs() @ weight.abs()
