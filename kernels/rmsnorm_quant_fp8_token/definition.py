"""Residual add, RMSNorm and e4m3 quantisation with one scale a token: `rmsnorm_quant_fp8` for per-token products.

    h = x + residual                                  float32, not rounded
    y = h / sqrt(mean(h^2) + eps) * weight            float32, not rounded
    scales[t] = max(amax |y[t]| / 448, 1 / (448 * 512))
    y_q = e4m3(y / scale), to nearest, ties to even, never above 448
    residual_out = h, rounded once to the inputs' type

The scale's floor is that of vLLM's `rms_norm_dynamic_per_token_quant`. Inputs are finite.
"""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload
from warpsmith.lab import peer_libraries
from warpsmith.lab.peers import Peer

LARGEST = 448.0
SMALLEST_SCALE = 1 / (LARGEST * 512)


def at(tokens: int, hidden: int, set: str = "representative", dtype: str = "bfloat16") -> Workload:
    short = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}[dtype]
    return Workload(
        name=f"{tokens}x{hidden}-{short}", axes={"tokens": tokens, "hidden": hidden}, dtype=dtype, set=set
    )


definition = Definition(
    name="rmsnorm_quant_fp8_token",
    description="h = x + residual; y_q, scales = e4m3 of rmsnorm(h) * weight, one scale a token; residual_out = h",
    op_type="norm",
    axes={"tokens": "tokens of the batch", "hidden": "hidden size"},
    inputs={
        "x": TensorSpec(shape=("tokens", "hidden"), description="what the block before added"),
        "residual": TensorSpec(shape=("tokens", "hidden"), description="the stream it is added to"),
        "weight": TensorSpec(shape=("hidden",), role="weight"),
        "eps": ScalarSpec(value=1e-6),
    },
    outputs={
        "y_q": TensorSpec(shape=("tokens", "hidden"), dtype="float8_e4m3fn"),
        "scales": TensorSpec(shape=("tokens",), dtype="float32"),
        "residual_out": TensorSpec(shape=("tokens", "hidden")),
    },
    deterministic=True,
    # As in `rmsnorm_quant_fp8`: one rounding of the exact quotient.
    tolerance={
        "y_q": Tolerance(reduction="hidden", slack=1.0),
        "scales": Tolerance(reduction="hidden"),
        "residual_out": Tolerance(slack=1.0),
    },
    flops="8 * tokens * hidden",
    workloads=(
        at(8192, 7168),
        at(16384, 4096),
        at(128, 7168),
        at(1, 7168, "full"),
        at(16, 7168, "full"),
        at(1024, 5120, "full"),
        at(4096, 2048, "full"),
        at(16, 8192, "full"),
        at(1, 3000, "odd"),
        at(13, 7176, "odd"),
        at(7, 5120, "odd"),
        at(131, 2048, "odd"),
        at(3, 1, "odd"),
        at(67, 641, "odd"),
        at(3, 7176, "odd", "float16"),
        at(6, 1001, "odd", "float16"),
        at(2, 300, "odd", "float32"),
    ),
)


def reference(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    h = x.float() + residual.float()
    y = h * torch.rsqrt(h.square().mean(-1, keepdim=True) + eps) * weight.float()
    scales = (y.abs().amax(-1) / LARGEST).clamp(min=SMALLEST_SCALE)
    y_q = (y / scales[:, None]).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)
    return y_q, scales, h.to(x.dtype)


def vllm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """vLLM's `rms_norm_dynamic_per_token_quant`, which adds into the stream in place. It rounds the normalised row
    to the inputs' type before and after the weight."""
    ops = peer_libraries.vllm("_C")
    y_q = torch.empty_like(x, dtype=torch.float8_e4m3fn)
    scales = x.new_empty(x.shape[0], 1, dtype=torch.float32)
    ops.rms_norm_dynamic_per_token_quant(y_q, x, weight, scales, eps, None, residual)
    return y_q, scales.view(-1), residual


peers = {"vllm": Peer(vllm, consumes=("residual",), differs="adds into the residual stream in place")}
