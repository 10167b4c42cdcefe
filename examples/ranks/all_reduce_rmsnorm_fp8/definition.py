"""All-reduce, residual, RMSNorm and e4m3 quantisation by token: what follows a row-parallel layer before an fp8
one.

hidden = residual + the sum of all ranks' parts y = hidden / sqrt(mean(hidden^2) + eps) * weight scales[t] =
max(amax |y[t]| / 448, 1 / (448 * 512)) y_q = e4m3(y / scale), to nearest, ties to even, never above 448

The scale's floor is that of vLLM's `rms_norm_dynamic_per_token_quant`. Inputs are finite.
"""

import torch

from warpsmith import Definition, ScalarSpec, TensorSpec, Tolerance, Workload

LARGEST = 448.0
SMALLEST_SCALE = 1 / (LARGEST * 512)

BITS = {"bfloat16": 8, "float16": 11, "float32": 24}
"""Bits of a number's mantissa, with the leading one."""


def at(rows: int, cols: int, set: str = "representative", dtype: str = "bfloat16") -> Workload:
    """Return the workload of a size."""
    short = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}[dtype]
    return Workload(name=f"{rows}x{cols}-{short}", axes={"rows": rows, "cols": cols}, set=set, dtype=dtype)


definition = Definition(
    name="all_reduce_rmsnorm_fp8",
    description="hidden = residual + the sum of all ranks' parts; y_q, scales = e4m3 of its RMSNorm, by token",
    op_type="norm",
    ranks=2,
    axes={"parts": 2, "rows": "tokens", "cols": "hidden size"},
    inputs={
        "partial": TensorSpec(shape=("parts", "rows", "cols"), shard_axis="parts"),  # each rank has one part
        "residual": TensorSpec(shape=("rows", "cols")),  # every rank has all of it
        "weight": TensorSpec(shape=("cols",), role="weight"),
        "eps": ScalarSpec(value=1e-6),
    },
    outputs={
        "y_q": TensorSpec(shape=("rows", "cols"), dtype="float8_e4m3fn"),
        "scales": TensorSpec(shape=("rows",), dtype="float32"),
        "hidden": TensorSpec(shape=("rows", "cols")),
    },
    # One rounding of the quotient, as in `rmsnorm_quant_fp8_token`.
    tolerance={
        "y_q": Tolerance(reduction="cols", slack=1.0),
        "scales": Tolerance(reduction="cols"),
        "hidden": Tolerance(reduction="cols"),
    },
    flops="(parts + 8) * rows * cols",
    workloads=(
        at(16, 8192),
        at(256, 8192),
        # What tensor parallelism exchanges in models of 8192: 16 KB to 64 MB a rank.
        *(at(rows, 8192, "full") for rows in (1, 4, 64, 512, 1024, 4096)),
        at(1, 1, "odd", "float32"),
        at(3, 17, "odd", "float32"),
        at(67, 130, "odd"),
    ),
)


def reference(
    partial: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return what every rank must have, from all parts at once."""
    hidden = residual.float() + partial.float().sum(0)
    y = hidden * torch.rsqrt(hidden.square().mean(-1, keepdim=True) + eps) * weight.float()
    scales = (y.abs().amax(-1) / LARGEST).clamp(min=SMALLEST_SCALE)
    y_q = (y / scales[:, None]).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)
    return y_q, scales, hidden.to(residual.dtype)


def magnitude(
    partial: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the scale of rounding errors: terms of the sum may cancel, and their errors stay. A quotient has the
    errors of its scale too."""
    hidden = residual + partial.sum(0)
    terms = residual.abs() + partial.abs().sum(0)
    rstd = (hidden.square().mean(-1, keepdim=True) + eps).rsqrt()
    y = (hidden * rstd * weight).abs()
    scales = (y.amax(-1) / LARGEST).clamp(min=SMALLEST_SCALE)
    spread = terms * rstd * weight.abs()
    spread_of_scales = spread.amax(-1) / LARGEST
    quotients = (spread + y * (spread_of_scales / scales)[:, None]) / scales[:, None]
    return quotients, spread_of_scales, terms


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
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the steps of rounding beyond float32's: a collective rounds each sum to the type of the parts."""
    steps = torch.full_like(residual, len(partial) * weigh_rounding(partial))
    return steps, steps[:, 0], steps
