"""A linear layer with 4-bit weights in groups of 128, as decoding calls it: few tokens, one pass over the weights.

    w[n, k] = (q[n, k] - z[n, k // 128]) * scales[n, k // 128]        float32, exact
    y = x @ w.t()                                                      summed in float32

The layout is that of compressed-tensors' `pack-quantized` format, with which llm-compressor writes checkpoints and
vLLM reads them: `weight_packed` holds eight values of k in an int32, the first in the lowest four bits, and
`weight_zero_point` eight outputs in an int32, the last word padded. Both have the offset of 8 added, so that q and
z are 0 to 15 here. A version that rounds w to bfloat16 misses the bound, as Marlin and Machete do; a race times them
as `near`. The inputs are finite.
"""

import functools
from typing import Any

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload
from warpsmith.lab import peer_libraries
from warpsmith.lab.peers import Peer

GROUP = 128


def at(tokens: int, features: int, k: int, set: str = "representative") -> Workload:
    axes = {"tokens": tokens, "features": features, "groups": k // GROUP}
    return Workload(name=f"{tokens}x{features}x{k}-bf16", axes=axes, dtype="bfloat16", set=set)


_WORDS = "integers:-2147483648:2147483648"
"""Any 32 bits: eight independent nibbles."""

definition = Definition(
    name="int4_linear",
    description="y = x @ ((q - z) * scales).t(), weights of 4 bits in groups of 128 along k",
    op_type="gemm",
    axes={"tokens": "rows of x", "features": "outputs of the layer", "groups": "its inputs over 128"},
    inputs={
        "x": TensorSpec(shape=("tokens", "128 * groups")),
        "packed": TensorSpec(
            shape=("features", "16 * groups"), dtype="int32", distribution=_WORDS, role="weight",
            description="eight values of k a word, the first in the lowest bits",
        ),
        "scales": TensorSpec(shape=("features", "groups"), distribution="uniform:0.005:0.025", role="weight"),
        "zeros": TensorSpec(
            shape=("(features + 7) // 8", "groups"), dtype="int32", distribution=_WORDS, role="weight",
            description="zero points, eight outputs a word, the first in the lowest bits",
        ),
    },
    outputs={"y": TensorSpec(shape=("tokens", "features"))},
    deterministic=True,
    tolerance=Tolerance(reduction="128 * groups"),
    flops="2 * tokens * features * 128 * groups",
    workloads=(
        at(1, 11008, 4096),
        at(1, 4096, 11008),
        at(1, 28672, 8192),
        at(4, 14336, 4096),
        at(16, 4096, 4096),
        at(1, 4096, 4096, "full"),
        at(1, 6144, 4096, "full"),
        at(2, 28672, 4096, "full"),
        at(8, 4096, 14336, "full"),
        at(16, 28672, 8192, "full"),
        at(1, 1, 128, "odd"),
        at(1, 129, 384, "odd"),
        at(2, 40, 1024, "odd"),
        at(3, 67, 128, "odd"),
        at(4, 200, 640, "odd"),
        at(7, 1000, 1152, "odd"),
        at(13, 61, 4224, "odd"),
        at(16, 136, 256, "odd"),
        at(17, 24, 512, "odd"),
    ),
)  # fmt: skip


def nibbles(words: torch.Tensor) -> torch.Tensor:
    """The eight values of each word along a new last axis: (..., 8)."""
    return (words[..., None] >> torch.arange(0, 32, 4, dtype=torch.int32, device=words.device)) & 15


def points(zeros: torch.Tensor, features: int) -> torch.Tensor:
    """Zero points as they are used: (features, groups)."""
    return nibbles(zeros).permute(0, 2, 1).flatten(0, 1)[:features]


def weights(packed: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor) -> torch.Tensor:
    """The layer's weights: (features, k) in float32."""
    features, groups = scales.shape
    q = nibbles(packed).view(features, groups, GROUP)
    z = points(zeros, features)[..., None]
    return ((q - z).float() * scales.float()[..., None]).view(features, groups * GROUP)


def reference(x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor) -> torch.Tensor:
    return (x.float() @ weights(packed, scales, zeros).t()).to(x.dtype)


def magnitude(x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor) -> torch.Tensor:
    """Products cancel: rounding errors are relative to the sum of their absolute values."""
    return x.abs().float() @ weights(packed, scales, zeros).abs().t()


# Peers ----------------------------------------------------------------------------------------------------------
# A user of these libraries repacks the weights once, when the model is loaded: `prepare`, outside of all times.


def bf16_weights(packed: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (weights(packed, scales, zeros).to(scales.dtype),)


def bf16_linear(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.linear(x, weight)


def tinygemm_weights(packed: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """PyTorch's own form: bytes with the even k in the high bits, tiled; a group's scale and its value at q = 8."""
    features = scales.shape[0]
    if features % 8:
        raise ValueError("PyTorch's int4 product takes a number of outputs that 8 divides")
    q = packed.view(torch.uint8)
    tiled = torch.ops.aten._convert_weight_to_int4pack((q << 4) | (q >> 4), 8)
    middle = (8 - points(zeros, features)).to(scales.dtype) * scales
    return tiled, torch.stack((scales, middle), -1).transpose(0, 1).contiguous()


def tinygemm(x: torch.Tensor, tiled: torch.Tensor, scales_and_middles: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten._weight_int4pack_mm(x, tiled, GROUP, scales_and_middles)


UINT4 = (4 << 8) | (1 << 50)
"""vLLM's number for unsigned 4-bit values without a bias, from the fields of its `ScalarType`."""


def _vllm(name: str) -> Any:
    operators = peer_libraries.vllm("_C")
    if not hasattr(operators, name):
        raise ImportError(f"vLLM's operators have no {name}: pip install {peer_libraries.VLLM}.")
    return getattr(operators, name)


def _places(order: list[int], values: torch.Tensor) -> torch.Tensor:
    """Values whose last axis is permuted in pieces as long as the order."""
    return values.unflatten(-1, (-1, len(order)))[..., order].flatten(-2)


def marlin_weights(packed: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Marlin's form: tiles of 16 x 64, scales and zero points in the order in which a warp's threads read them."""
    features, groups = scales.shape
    if features % 64:
        raise ValueError("Marlin takes a number of outputs that 64 divides")
    nothing = torch.empty(0, dtype=torch.int32, device=packed.device)
    repack = _vllm("gptq_marlin_repack")
    more = {"is_a_8bit": False} if "is_a_8bit" in str(repack.default._schema) else {}
    tiled = repack(packed.t().contiguous(), nothing, groups * GROUP, features, 4, **more)
    across = [i + 8 * j for i in range(8) for j in range(8)]
    pairs = _places([0, 2, 4, 6, 1, 3, 5, 7], _places(across, points(zeros, features).t().contiguous()))
    shifts = torch.arange(0, 32, 4, dtype=torch.int64, device=packed.device)
    words = (pairs.long().unflatten(-1, (-1, 8)) << shifts).sum(-1).to(torch.int32)
    locks = torch.zeros(_multiprocessors(packed.device), dtype=torch.int32, device=packed.device)
    return tiled, _places(across, scales.t().contiguous()), words, locks


def _multiprocessors(device: torch.device) -> int:
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


@functools.cache
def _marlin() -> tuple[Any, frozenset[str]]:
    product = _vllm("marlin_gemm")
    return product, frozenset(one.name for one in product.default._schema.arguments)


def marlin(
    x: torch.Tensor, tiled: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor, locks: torch.Tensor
) -> torch.Tensor:
    product, names = _marlin()
    values = {
        "a": x, "c_or_none": None, "b_q_weight": tiled, "b_bias_or_none": None, "b_scales": scales,
        "a_scales": None, "global_scale": None, "b_zeros_or_none": zeros, "g_idx_or_none": None,
        "perm_or_none": None, "workspace": locks, "b_type_id": UINT4, "size_m": x.shape[0],
        "size_n": scales.shape[1], "size_k": x.shape[1], "is_k_full": True, "use_atomic_add": False,
        "use_fp32_reduce": True, "is_zp_float": False,
    }  # fmt: skip
    return product(**{name: value for name, value in values.items() if name in names})


def machete_weights(packed: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Machete's form: prepacked tiles, and the zero points times minus the scales."""
    if scales.shape[0] % 128:
        raise ValueError("Machete takes a number of outputs that 128 divides")
    tiled = _vllm("machete_prepack_B")(packed.t(), scales.dtype, UINT4, scales.dtype)
    shifts = -scales * points(zeros, scales.shape[0]).to(scales.dtype)
    return tiled, scales.t().contiguous(), shifts.t().contiguous()


def machete(x: torch.Tensor, tiled: torch.Tensor, scales: torch.Tensor, shifts: torch.Tensor) -> torch.Tensor:
    return _vllm("machete_mm")(x, tiled, UINT4, x.dtype, scales, shifts, GROUP, None, None, None)


_ROUNDED = "its weights are repacked ahead of the calls, and rounded to bfloat16"

peers = {
    "cublas-bf16": Peer(bf16_linear, prepare=bf16_weights, differs="weights of 16 bits: four times the bytes"),
    "tinygemm": Peer(tinygemm, prepare=tinygemm_weights, differs=_ROUNDED),
    "vllm-marlin": Peer(marlin, prepare=marlin_weights, differs=_ROUNDED),
    "vllm-machete": Peer(machete, prepare=machete_weights, differs=_ROUNDED),
}
