"""A product of e4m3 matrices with a scale for each 1x128 of the left one and each 128x128 of the right one.

    y[i, j] = sum over k of (a[i, k] * a_scales[k // 128, i]) * (b[j, k] * b_scales[j // 128, k // 128])

This is the linear layer of DeepSeek-V3, in the layout that DeepGEMM's `fp8_gemm_nt` takes on sm_90 without a copy:
both matrices have k contiguous; the left one's scales have tokens contiguous, padded to 16 bytes, as
`rmsnorm_quant_fp8` and `swiglu_quant_fp8` write them. Padding holds arbitrary numbers and no result depends on it.
m and n are any numbers; k is a multiple of 128; inputs are finite.

Hopper's tensor cores add fp8 products with about 14 bits (arXiv 2412.19437, section 3.3.2; 2511.10909 has them bit
by bit), so kernels add the products of 128 of k there and promote their sum to float32. The bound has room for
that, and not for sums of the whole k with 14 bits: `extra` says how far a block's additions may be off.
"""

import torch

from warpsmith import Peer
from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload
from warpsmith.lab import peer_libraries

BLOCK = 128

RANDOM_STEPS = 8
"""Units of 2^-13 of a block's partial sums by which its 132 additions may be off, where errors have both signs."""

TRUNCATED_STEPS = 32
"""The same as a share of the result, where all terms have one sign and each is truncated: half a unit a term."""


def at(m: int, n: int, k: int, set: str = "representative") -> Workload:
    return Workload(
        name=f"{m}x{n}x{k}-bf16",
        axes={"m": m, "n": n, "groups": k // BLOCK},
        dtype="bfloat16",
        distribution="normal:0:64",
        set=set,
    )


definition = Definition(
    name="fp8_block_gemm",
    description="y = a b^T of e4m3 matrices with scales of 1x128 and 128x128",
    op_type="gemm",
    axes={"m": "tokens of the batch", "n": "features of the result", "groups": "features of the input over 128"},
    inputs={
        "a": TensorSpec(shape=("m", "128 * groups"), dtype="float8_e4m3fn"),
        "a_scales": TensorSpec(
            shape=("groups", "4 * ((m + 3) // 4)"), dtype="float32", distribution="uniform:0.002:0.02",
            description="tokens contiguous and padded to a multiple of 4; the padding is arbitrary",
        ),
        "b": TensorSpec(shape=("n", "128 * groups"), dtype="float8_e4m3fn", role="weight"),
        "b_scales": TensorSpec(
            shape=("(n + 127) // 128", "groups"), dtype="float32", distribution="uniform:0.0001:0.001",
            role="weight",
        ),
    },
    outputs={"y": TensorSpec(shape=("m", "n"), dtype="bfloat16")},
    deterministic=True,
    tolerance=Tolerance(reduction="128 * groups", accumulate="float32"),
    flops="2 * m * n * 128 * groups",
    workloads=(
        at(64, 2112, 7168),
        at(64, 24576, 1536),
        at(64, 7168, 16384),
        at(128, 4096, 7168),
        at(4096, 2112, 7168),
        at(4096, 24576, 1536),
        at(4096, 7168, 16384),
        at(1, 7168, 2048, "full"),
        at(16, 4096, 7168, "full"),
        at(64, 32768, 512, "full"),
        at(128, 7168, 2048, "full"),
        at(4096, 32768, 512, "full"),
        at(4096, 7168, 2048, "full"),
        at(1, 1, 128, "odd"),
        at(1, 128, 768, "odd"),
        at(3, 130, 896, "odd"),
        at(7, 576, 1152, "odd"),
        at(16, 250, 640, "odd"),
        at(33, 264, 2176, "odd"),
        at(65, 200, 128, "odd"),
        at(129, 384, 512, "odd"),
        at(130, 67, 384, "odd"),
        at(5, 513, 256, "odd"),
    ),
)  # fmt: skip


def _scaled(
    a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Both matrices times their scales, (m, k) and (n, k), in float32."""
    left = a_scales.t()[: len(a)].repeat_interleave(BLOCK, 1)
    right = b_scales.repeat_interleave(BLOCK, 0)[: len(b)].repeat_interleave(BLOCK, 1)
    return a.float() * left.float(), b.float() * right.float()


def reference(a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor) -> torch.Tensor:
    left, right = _scaled(a, a_scales, b, b_scales)
    return (left @ right.t()).bfloat16()


def magnitude(a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor) -> torch.Tensor:
    """Products cancel: roundoffs of float32 are those of a sum of absolute values."""
    left, right = _scaled(a, a_scales, b, b_scales)
    return left.abs() @ right.abs().t()


def extra(a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor) -> torch.Tensor:
    """What tensor cores lose when they add 128 products with 14 bits, in roundoffs of `magnitude`.

    An addition truncates its terms at 2^-13 of the largest: of a product, or of the block's sum so far. Root mean
    squares of both stand for it. Blocks' errors are independent, but for the share of truncation in each sum.
    """
    left, right = _scaled(a, a_scales, b, b_scales)
    size = left.new_zeros(len(a), len(b))
    squares, total = torch.zeros_like(size), torch.zeros_like(size)
    for some, other in zip(left.split(BLOCK, 1), right.split(BLOCK, 1), strict=True):
        part = some @ other.t()
        total += part
        size += some.abs() @ other.abs().t()
        squares += part.square() + some.square() @ other.square().t()
    lost = RANDOM_STEPS * squares.sqrt() + TRUNCATED_STEPS * total.abs()
    return lost * 2.0 ** (24 - 13) / size.clamp(min=torch.finfo(torch.float32).tiny)


# Peers ----------------------------------------------------------------------------------------------------------


def deepgemm(a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor) -> torch.Tensor:
    """DeepSeek's kernel. It is compiled by nvcc at the first call of a shape."""
    y = a.new_empty(len(a), len(b), dtype=torch.bfloat16)
    # Without the flag scales would be rounded to powers of two.
    peer_libraries.deep_gemm().fp8_gemm_nt((a, a_scales.t()[: len(a)]), (b, b_scales), y, disable_ue8m0_cast=True)
    return y


def padded_scales(b_scales: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Rows of scales padded to 16 bytes, as cuBLASLt has them."""
    return (torch.nn.functional.pad(b_scales, (0, -b_scales.shape[1] % 4)),)


def cublaslt(a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor) -> torch.Tensor:
    """`torch._scaled_mm`, which has this recipe on sm_90 from CUDA 12.9 on."""
    if len(a) % 4 or len(b) % 16:
        raise NotImplementedError(
            "torch._scaled_mm needs m in fours and n in sixteens; race it at such a workload."
        )
    right = b_scales[:, : len(a_scales)]
    return torch._scaled_mm(a, b.t(), a_scales.t(), right.t(), out_dtype=torch.bfloat16)


def cutlass(a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor) -> torch.Tensor:
    """vLLM's `cutlass_scaled_mm`."""
    if len(a) % 4 or len(b) % BLOCK:
        raise NotImplementedError(
            "vLLM's CUTLASS product needs m in fours and n in 128s; race it at such a workload."
        )
    y = a.new_empty(len(a), len(b), dtype=torch.bfloat16)
    peer_libraries.vllm("_C").cutlass_scaled_mm(y, a, b.t(), a_scales.t(), b_scales.t(), None)
    return y


peers = {
    "deepgemm": deepgemm,
    "cublaslt": Peer(
        cublaslt, prepare=padded_scales, differs="rows of b's scales are padded to 16 bytes beforehand"
    ),
    "vllm-cutlass": cutlass,
}
