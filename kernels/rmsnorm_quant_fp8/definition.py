"""Residual add, RMSNorm and e4m3 quantisation in groups of 128: what stands before each fp8 linear layer.

    h = x + residual                                  float32, not rounded
    y = h / sqrt(mean(h^2) + eps) * weight            float32, not rounded
    scales[g, t] = max(amax |y[t, 128g : 128g+128]|, 1e-4) / 448
    y_q = e4m3(y / scale), to nearest, ties to even, never above 448
    residual_out = h, rounded once to the inputs' type

The norm takes h before it is rounded, as vLLM's and FlashInfer's fused kernels do: the sum is at hand in float32,
and rounding it first would only lose bits. A version that rounds h or y on the way misses the scales' bound. The
floor of 1e-4 is that of DeepGEMM's `per_token_cast_to_fp8`; a group of zeros has the scale 1e-4 / 448.

Scales lie as DeepGEMM takes them for the left operand on sm_90 (`get_mn_major_tma_aligned_tensor` passes them on
without a copy): tokens are contiguous, and their number is padded to 16 bytes. `scales.t()[:tokens]` is that
tensor of shape (tokens, groups) and strides (1, 4 * ceil(tokens / 4)). DeepGEMM leaves the padding undefined; here
it is zero, so that calls are reproducible. The hidden size is a multiple of 128; inputs are finite.
"""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload
from warpsmith.lab import peer_libraries
from warpsmith.lab.peers import Peer

AMAX_FLOOR = 1e-4
LARGEST = 448.0


def at(
    tokens: int, hidden: int, set: str = "representative", dtype: str = "bfloat16", distribution: str = "normal"
) -> Workload:
    short = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}[dtype]
    drawn = "" if distribution == "normal" else f"-{distribution}"
    return Workload(
        name=f"{tokens}x{hidden}-{short}{drawn}",
        axes={"tokens": tokens, "groups": hidden // 128},
        dtype=dtype,
        distribution=distribution,
        set=set,
    )


definition = Definition(
    name="rmsnorm_quant_fp8",
    description="h = x + residual; y_q, scales = e4m3 of rmsnorm(h) * weight in groups of 128; residual_out = h",
    op_type="norm",
    axes={"tokens": "tokens of the batch", "groups": "hidden size over 128"},
    inputs={
        "x": TensorSpec(shape=("tokens", "128 * groups"), description="what the block before added"),
        "residual": TensorSpec(shape=("tokens", "128 * groups"), description="the stream it is added to"),
        "weight": TensorSpec(shape=("128 * groups",), role="weight"),
        "eps": ScalarSpec(value=1e-6),
    },
    outputs={
        "y_q": TensorSpec(shape=("tokens", "128 * groups"), dtype="float8_e4m3fn"),
        "scales": TensorSpec(
            shape=("groups", "4 * ((tokens + 3) // 4)"),
            dtype="float32",
            description="transposed and padded with zeros, as DeepGEMM takes them",
        ),
        "residual_out": TensorSpec(shape=("tokens", "128 * groups")),
    },
    deterministic=True,
    # y_q is compared with the quotient before it is rounded, so that one rounding is all there is: half a unit of
    # e4m3, which `slack` 1 allows and truncation misses. A value within float32's errors of a midpoint may land on
    # either neighbour; both are half a unit away, and the bound has room there: half a unit is 1/16 of the lowest
    # number of a binade, but the lowest midpoint lies 1/16 above it. The scales show what happened before.
    tolerance={
        "y_q": Tolerance(reduction="128 * groups", slack=1.0),
        "scales": Tolerance(reduction="128 * groups"),
        "residual_out": Tolerance(slack=1.0),
    },
    # An element: add, square and sum, two products, absolute value and maximum, product with 1 / scale.
    flops="8 * tokens * 128 * groups",
    workloads=(
        at(8192, 7168),
        at(16384, 4096),
        at(128, 7168),
        at(1, 7168, "full"),
        at(16, 7168, "full"),
        at(1024, 7168, "full"),
        at(16, 2048, "full"),
        at(4096, 2048, "full"),
        at(1024, 5120, "full"),
        at(16, 8192, "full"),
        at(8192, 8192, "full"),
        # Hidden sizes that are no power of two, tokens that no tile divides.
        at(1, 3072, "odd"),
        at(13, 7296, "odd"),
        at(7, 5120, "odd"),
        at(131, 2048, "odd"),
        at(3, 128, "odd"),
        at(67, 640, "odd"),
        at(3, 7296, "odd", "float16"),
        at(6, 1152, "odd", "float16"),
        at(2, 384, "odd", "float32"),
    ),
)


def reference(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    tokens, hidden = x.shape
    h = x.float() + residual.float()
    y = h * torch.rsqrt(h.square().mean(-1, keepdim=True) + eps) * weight.float()
    grouped = y.view(tokens, hidden // 128, 128)
    scales = grouped.abs().amax(-1).clamp(min=AMAX_FLOOR) / LARGEST
    y_q = (grouped / scales[..., None]).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn).view(tokens, hidden)
    return y_q, torch.nn.functional.pad(scales.t(), (0, -tokens % 4)).contiguous(), h.to(x.dtype)


def vllm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """vLLM's `rms_norm_per_block_quant`, which adds into the stream in place.

    It rounds the normalised row to the inputs' type before and after the weight, and its scales are no smaller
    than 1 / (448 * 512).
    """
    tokens, hidden = x.shape
    ops = peer_libraries.vllm("_C")
    y_q = torch.empty_like(x, dtype=torch.float8_e4m3fn)
    scales = x.new_empty(hidden // 128, tokens + -tokens % 4, dtype=torch.float32)
    scales[:, tokens:].zero_()
    ops.rms_norm_per_block_quant(y_q, x, weight, scales.t()[:tokens], eps, None, residual, 128, True)
    return y_q, scales, residual


peers = {"vllm": Peer(vllm, consumes=("residual",), differs="adds into the residual stream in place")}
