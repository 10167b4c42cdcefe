"""Exchange of a mixture of experts: tokens go to the ranks of their experts, and results come back.

    y[t] = sum over k of weights[t, k] * x[t] * scale[experts[t, k]]

An expert is a product with a vector, so that the exchange is what takes the time. A version must compute it on the
rank that has the expert: that is the point, and no check can tell.
"""

import torch

from warpsmith import Definition, TensorSpec, Tolerance, Workload

BITS = {"bfloat16": 8, "float16": 11, "float32": 24}
"""Bits of a number's mantissa, with the leading one."""


def at(
    tokens: int, hidden: int, experts: int, top_k: int, set: str = "representative", dtype: str = "bfloat16"
) -> Workload:
    """Return the workload of a size."""
    short = {"float32": "fp32", "bfloat16": "bf16"}[dtype]
    axes = {"tokens": tokens, "hidden": hidden, "experts": experts, "top_k": top_k}
    return Workload(name=f"{tokens}x{hidden}x{experts}x{top_k}-{short}", axes=axes, set=set, dtype=dtype)


definition = Definition(
    name="moe_dispatch_combine",
    description="y[t] = sum over k of weights[t, k] * x[t] * scale[experts[t, k]], tokens and experts shared out",
    op_type="moe",
    ranks=2,
    axes={
        "tokens": "tokens of all ranks",
        "hidden": "hidden size",
        "experts": "experts of all ranks",
        "top_k": "experts of a token",
    },
    inputs={
        "x": TensorSpec(shape=("tokens", "hidden"), shard_axis="tokens"),
        "experts": TensorSpec(
            shape=("tokens", "top_k"), shard_axis="tokens", dtype="int32", distribution="integers:0:experts"
        ),
        "weights": TensorSpec(
            shape=("tokens", "top_k"), shard_axis="tokens", dtype="float32", distribution="uniform:0:1"
        ),
        "scale": TensorSpec(
            shape=("experts", "hidden"), shard_axis="experts", role="weight", distribution="uniform:-1:1"
        ),
    },
    outputs={"y": TensorSpec(shape=("tokens", "hidden"), shard_axis="tokens")},
    tolerance=Tolerance(reduction="top_k"),
    flops="3 * tokens * top_k * hidden",
    workloads=(
        at(256, 7168, 64, 8),
        at(2048, 7168, 64, 8),
        at(16, 7168, 64, 8, "full"),
        at(8192, 7168, 64, 8, "full"),
        at(8, 40, 4, 2, "odd", "float32"),
        at(20, 129, 12, 3, "odd", "float32"),
        at(60, 264, 8, 1, "odd"),
    ),
)


def reference(x: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return the sums over the experts of each token."""
    return x * torch.einsum("tk,tkh->th", weights.to(x.dtype), scale[experts.long()])


def magnitude(x: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return the scale of rounding errors: terms of the sum may cancel, and their errors stay."""
    return reference(x.abs(), experts, weights.abs(), scale.abs())


def weigh_rounding(x: torch.Tensor) -> int:
    """Return how many roundings of float32 weigh as much as one of the type of these values; 0 for float32.

    Hooks get all tensors as float64, so the bits tell the type.
    """
    mantissas = torch.frexp(x).mantissa
    for bits in (BITS["bfloat16"], BITS["float16"]):
        if bool(((mantissas * 2**bits).frac() == 0).all()):
            return int(2 ** (BITS["float32"] - bits))
    return 0


def extra(x: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return the steps of rounding beyond float32's: experts' results return in the type of the tokens."""
    return torch.full_like(x, 2 * weigh_rounding(x))
