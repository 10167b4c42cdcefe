"""SwiGLU's activation and e4m3 quantisation in groups of 128: what stands before each fp8 down projection.

    a = gate / (1 + exp(-gate)) * up                  float32, not rounded
    scales[g, t] = max(amax |a[t, 128g : 128g+128]|, 1e-4) / 448
    y_q = e4m3(a / scale), to nearest, ties to even, never above 448

`x` holds the gates in the first half of its last axis and the factors in the second, as vLLM's `silu_and_mul`
takes them; a workload's second number is the width of the result. A version that rounds `a` to the inputs' type
misses the scales' bound. The scales' floor and layout are those of `rmsnorm_quant_fp8`: DeepGEMM's, tokens
contiguous and padded with zeros to a multiple of 4. The width is a multiple of 128; inputs are finite.
"""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload
from warpsmith.lab import peer_libraries

AMAX_FLOOR = 1e-4
LARGEST = 448.0


def at(tokens: int, width: int, set: str = "representative", dtype: str = "bfloat16") -> Workload:
    short = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}[dtype]
    return Workload(
        name=f"{tokens}x{width}-{short}", axes={"tokens": tokens, "groups": width // 128}, dtype=dtype, set=set
    )


definition = Definition(
    name="swiglu_quant_fp8",
    description="a = silu(gate) * up; y_q, scales = e4m3 of a in groups of 128",
    op_type="activation",
    axes={"tokens": "tokens of the batch", "groups": "width of the result over 128"},
    inputs={"x": TensorSpec(shape=("tokens", "256 * groups"), description="gates, then factors")},
    outputs={
        "y_q": TensorSpec(shape=("tokens", "128 * groups"), dtype="float8_e4m3fn"),
        "scales": TensorSpec(
            shape=("groups", "4 * ((tokens + 3) // 4)"),
            dtype="float32",
            description="transposed and padded with zeros, as DeepGEMM takes them",
        ),
    },
    deterministic=True,
    # y_q is compared with the quotient before it is rounded: half a unit of e4m3, which `slack` 1 allows and
    # truncation misses. A value within float32's errors of a midpoint is half a unit from either neighbour.
    tolerance={"y_q": Tolerance(slack=1.0), "scales": Tolerance()},
    # An element: exponential, add, division, two products, absolute value and maximum, product with 1 / scale.
    flops="8 * tokens * 128 * groups",
    workloads=(
        at(8192, 14336),
        at(65536, 2048),
        at(128, 14336, "full"),
        at(1, 14336, "full"),
        at(16, 18432, "full"),
        at(1024, 18432, "full"),
        at(4096, 2048, "full"),
        at(16384, 4864, "full"),
        at(8192, 768, "full"),
        at(1, 1408, "odd"),
        at(13, 2944, "odd"),
        at(7, 4864, "odd"),
        at(131, 768, "odd"),
        at(3, 128, "odd"),
        at(1021, 384, "odd"),
        at(3, 2432, "odd", "float16"),
        at(18, 384, "odd", "float16"),
        at(5, 640, "odd", "float32"),
    ),
)


def activation(x: torch.Tensor) -> torch.Tensor:
    gate, up = x.float().chunk(2, -1)
    return torch.nn.functional.silu(gate) * up


def reference(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    tokens, width = x.shape[0], x.shape[1] // 2
    grouped = activation(x).view(tokens, width // 128, 128)
    scales = grouped.abs().amax(-1).clamp(min=AMAX_FLOOR) / LARGEST
    y_q = (grouped / scales[..., None]).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn).view(tokens, width)
    return y_q, torch.nn.functional.pad(scales.t(), (0, -tokens % 4)).contiguous()


def extra(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rounding a negative gate's exponent moves silu by as many roundoffs as it is large; a group's largest value
    takes the scale with it, and the scale the group's others."""
    tokens, width = x.shape[0], x.shape[1] // 2
    steps = 4 * (-x[:, :width].float()).clamp(min=0.0)
    values = activation(x).abs()
    moved = (values * steps).view(tokens, width // 128, 128).amax(-1)
    of_scale = moved / values.view(tokens, width // 128, 128).amax(-1).clamp(min=AMAX_FLOOR)
    of_value = steps + of_scale.repeat_interleave(128, -1)
    return of_value, torch.nn.functional.pad(of_scale.t(), (0, -tokens % 4))


def vllm(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """vLLM's `silu_and_mul_per_block_quant`: one launch. Its scales are no smaller than 1 / (448 * 512)."""
    tokens, width = x.shape[0], x.shape[1] // 2
    ops = peer_libraries.vllm("_C")
    y_q = x.new_empty(tokens, width, dtype=torch.float8_e4m3fn)
    scales = x.new_empty(width // 128, tokens, dtype=torch.float32)
    ops.silu_and_mul_per_block_quant(y_q, x, scales, 128, None, True)
    return y_q, scales if tokens % 4 == 0 else torch.nn.functional.pad(scales, (0, -tokens % 4))


def vllm_unfused(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """vLLM's `silu_and_mul`, rounded to the inputs' type, then its `per_token_group_fp8_quant`."""
    tokens, width = x.shape[0], x.shape[1] // 2
    ops = peer_libraries.vllm("_C")
    values = x.new_empty(tokens, width)
    ops.silu_and_mul(values, x)
    y_q = torch.empty_like(values, dtype=torch.float8_e4m3fn)
    scales = x.new_empty(width // 128, tokens + -tokens % 4, dtype=torch.float32)
    scales[:, tokens:].zero_()
    rows = scales.t()[:tokens]
    ops.per_token_group_fp8_quant(values, y_q, rows, 128, AMAX_FLOOR, -LARGEST, LARGEST, False, True, True)
    return y_q, scales


peers = {"vllm": vllm, "vllm-unfused": vllm_unfused}
