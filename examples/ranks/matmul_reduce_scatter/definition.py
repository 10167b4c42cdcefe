"""Product and reduce-scatter: a row-parallel layer whose result is shared out by tokens (sequence parallelism)."""

import torch

from warpsmith import Definition, TensorSpec, Tolerance, Workload

BITS = {"bfloat16": 8, "float16": 11, "float32": 24}
"""Bits of a number's mantissa, with the leading one."""

PARTS = 2
"""Roundings of a sum that grows from part to part. Their errors mostly cancel, so that it holds on more ranks."""


def at(rows: int, k: int, cols: int, set: str = "representative", dtype: str = "bfloat16") -> Workload:
    """Return the workload of a size."""
    short = {"float32": "fp32", "bfloat16": "bf16"}[dtype]
    axes = {"rows": rows, "k": k, "cols": cols}
    return Workload(name=f"{rows}x{k}x{cols}-{short}", axes=axes, set=set, dtype=dtype)


definition = Definition(
    name="matmul_reduce_scatter",
    description="y = x @ weight, with the inner axis of the product and the rows of y shared out",
    op_type="gemm",
    ranks=2,
    axes={"rows": "tokens", "k": "inner size of all ranks", "cols": "columns of the weights"},
    inputs={
        "x": TensorSpec(shape=("rows", "k"), shard_axis="k"),
        "weight": TensorSpec(shape=("k", "cols"), shard_axis="k", role="weight"),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"), shard_axis="rows")},
    tolerance=Tolerance(reduction="k"),
    flops="2 * rows * k * cols",
    workloads=(
        at(1024, 8192, 8192),
        at(4096, 8192, 8192),
        at(8192, 8192, 8192, "full"),
        at(4096, 28672, 8192, "full"),
        at(4, 8, 12, "odd", "float32"),
        at(60, 132, 37, "odd", "float32"),
        at(252, 264, 72, "odd"),
    ),
)


def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return the whole product."""
    return x @ weight


def magnitude(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return the scale of rounding errors: terms of the sum may cancel, and their errors stay."""
    return x.abs() @ weight.abs()


def weigh_rounding(x: torch.Tensor) -> int:
    """Return how many roundings of float32 weigh as much as one of the type of these values; 0 for float32.

    Hooks get all tensors as float64, so the bits tell the type.
    """
    mantissas = torch.frexp(x).mantissa
    for bits in (BITS["bfloat16"], BITS["float16"]):
        if bool(((mantissas * 2**bits).frac() == 0).all()):
            return int(2 ** (BITS["float32"] - bits))
    return 0


def extra(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return the steps of rounding beyond float32's: parts are rounded to their type before they are added."""
    return x.new_full((x.shape[0], weight.shape[1]), PARTS * weigh_rounding(x))
