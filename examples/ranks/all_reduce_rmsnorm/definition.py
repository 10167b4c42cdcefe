"""All-reduce, residual and RMSNorm: what follows a row-parallel layer under tensor parallelism."""

import torch

from warpsmith import Definition, ScalarSpec, TensorSpec, Tolerance, Workload

BITS = {"bfloat16": 8, "float16": 11, "float32": 24}
"""Bits of a number's mantissa, with the leading one."""


def at(rows: int, cols: int, set: str = "representative", dtype: str = "float32") -> Workload:
    """Return the workload of a size."""
    short = {"float32": "", "bfloat16": "-bf16", "float16": "-fp16"}[dtype]
    return Workload(name=f"{rows}x{cols}{short}", axes={"rows": rows, "cols": cols}, set=set, dtype=dtype)


definition = Definition(
    name="all_reduce_rmsnorm",
    description="hidden = residual + the sum of all ranks' partial results; y = its RMSNorm * weight",
    op_type="norm",
    ranks=2,
    axes={"parts": 2, "rows": "tokens", "cols": "hidden size"},
    inputs={
        "partial": TensorSpec(shape=("parts", "rows", "cols"), shard_axis="parts"),  # each rank has one part
        "residual": TensorSpec(shape=("rows", "cols")),  # every rank has all of it
        "weight": TensorSpec(shape=("cols",), role="weight"),
        "eps": ScalarSpec(value=1e-6),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols")), "hidden": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="(parts + 5) * rows * cols",
    workloads=(
        at(256, 1024),
        at(16, 4096),
        # What tensor parallelism exchanges in models of 8192: 16 KB to 64 MB a rank.
        *(at(rows, 8192, "full", "bfloat16") for rows in (1, 4, 16, 64, 256, 512, 1024, 4096)),
        at(1, 1, "odd"),
        at(3, 17, "odd"),
        at(127, 129, "odd"),
    ),
)


def reference(
    partial: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what every rank must have, from all parts at once."""
    hidden = residual + partial.sum(0)
    return torch.nn.functional.rms_norm(hidden, (hidden.shape[-1],), weight, eps), hidden


def magnitude(
    partial: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the scale of rounding errors: terms of the sum may cancel, and their errors stay."""
    hidden = residual + partial.sum(0)
    terms = residual.abs() + partial.abs().sum(0)
    scale = (hidden.square().mean(-1, keepdim=True) + eps).rsqrt()
    return terms * scale * weight.abs(), terms


def weigh_rounding(x: torch.Tensor) -> int:
    """Return how many roundings of float32 weigh as much as one of the type of these values; 0 for float32.

    Hooks get all tensors as float64, so the bits tell the type.
    """
    mantissas = torch.frexp(x).mantissa
    for bits in (BITS["bfloat16"], BITS["float16"]):
        if bool(((mantissas * 2**bits).frac() == 0).all()):
            return int(2 ** (BITS["float32"] - bits))
    return 0


def extra(
    partial: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the steps of rounding beyond float32's: a collective rounds each sum to the type of the parts."""
    steps = torch.full_like(residual, len(partial) * weigh_rounding(partial))
    return steps, steps
