"""The weights' rows as rows of a batched tensor-core product whose batch splits k over a block's warps.

Hypothesis: at 4.3 TB/s a multiprocessor receives 37 weights a clock, so conversion and product must take fewer
than 3.4 lane operations a weight. Weights are read as 16-bit words, four values each: one shift and one lop3 make
two of them 128 + q in bfloat16, and the tensor cores multiply. Four products, one for each place in a word, take
every fourth x; nothing is interleaved. A product over a batch gives each warp groups of its own, so that k is split
inside a block and partial sums meet once, in a fixed order. Weights, zero points and x come by asynchronous copies;
a scale is asked for one step ahead. Without CENTRED zero points wait for the end of a group: a product with ones sums x.
Predicted: 8.5 us at 1x11008x4096 (floor 5.5), 33 us at 1x28672x8192 (floor 28.4), 6 us at 16x4096x4096 (floor 2.1).
Metric: DRAM busy to 85 % at 1x28672x8192.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

ROWS = 32
WARPS = 4
MANY_WARPS = 16
FEW_BLOCKS = 264
"""Up to two on each of 132 multiprocessors; then a block has MANY_WARPS."""
STAGES = 3
CENTRED = 1
ROOM = 176 * 1024
"""Bytes of shared memory for the stages of copies; sums take some more."""


def recipe(place: int, last: str) -> tl.constexpr:
    """Two values 128 + q of a pair of words, in bfloat16."""
    shift = f"shr.b32 t, $1, {4 * place}; lop3.b32 t, t" if place else "lop3.b32 t, $1"
    return tl.constexpr(f"{{ .reg .b32 t; {shift}, 0x000f000f, 0x43004300, 0xea; {last} }}")


LESS_0, LESS_1, LESS_2, LESS_3 = (recipe(place, "sub.bf16x2 $0, t, $2;") for place in range(4))
RAW_0, RAW_1, RAW_2, RAW_3 = (recipe(place, "mov.b32 $0, t;") for place in range(4))


@triton.jit
def product(
    words, points, x, total, sums, PLACE: tl.constexpr, LESS: tl.constexpr, RAW: tl.constexpr,
    CENTRED: tl.constexpr, MAGIC: tl.constexpr,
):  # fmt: skip
    """Adds the values at one place of each word times x, and without CENTRED the sum of x."""
    bits = ((x >> (16 * PLACE)) & 0xFFFF).to(tl.int16)
    x_place = bits.to(points.dtype, bitcast=True)
    if not MAGIC:
        values = ((words >> (4 * PLACE)) & 15).to(points.dtype) - points
    elif CENTRED:
        values = tl.inline_asm_elementwise(LESS, "=r,r,r", [words, points], tl.bfloat16, True, 2)
    else:
        values = tl.inline_asm_elementwise(RAW, "=r,r", [words], tl.bfloat16, True, 2)
        sums = tl.dot(tl.full(words.shape, 1.0, points.dtype), x_place, sums)
    return tl.dot(values, x_place, total), sums


@triton.jit
def rows_kernel(
    x_ptr, packed_ptr, scales_ptr, zeros_ptr, y_ptr, tokens, features, groups, token_tiles,
    ROWS: tl.constexpr, SPLIT: tl.constexpr, TOKENS: tl.constexpr, STAGES: tl.constexpr, CENTRED: tl.constexpr,
    MAGIC: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    ACROSS: tl.constexpr = TOKENS if TOKENS > 8 else 8  # columns of a product
    tile = tl.program_id(0) // token_tiles
    row = (tile * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    token = (tl.program_id(0) % token_tiles * ACROSS + tl.arange(0, ACROSS)).to(tl.int64)
    real_row, real_token = row < features, token < tokens
    near = tl.minimum(row, features - 1)
    part, word = tl.arange(0, SPLIT), tl.arange(0, 32)
    dtype: tl.constexpr = scales_ptr.dtype.element_ty

    of_words = packed_ptr + near[None, :, None] * (groups * 32) + word[None, None, :]
    if TOKENS == 1:  # the same in all columns: an eighth of the shared memory
        of_x = x_ptr + word[None, :, None]
    else:
        of_x = x_ptr + token[None, None, :] * (groups * 32) + word[None, :, None]
    of_scales = scales_ptr + near[None, :] * groups
    of_zeros = zeros_ptr + (near // 8)[None, :] * groups
    shift = (near % 8).to(tl.int32)[None, :] * 4

    if EARLY:
        gdc_wait()
        gdc_launch_dependents()
    y = tl.zeros([SPLIT, ROWS, ACROSS], tl.float32)
    scale = tl.load(of_scales + part[:, None], mask=part[:, None] < groups, other=0.0)
    for first in tl.range(0, groups, SPLIT, num_stages=STAGES):
        group = first + part
        there = group[:, None, None] < groups
        words = tl.load(of_words + group[:, None, None] * 32, mask=there, other=0)
        points = tl.load(of_zeros + group[:, None], mask=group[:, None] < groups, other=0)
        if TOKENS == 1:
            x = tl.load(of_x + group[:, None, None] * 32, mask=there, other=0)
            x = tl.broadcast_to(x, [SPLIT, 32, ACROSS])
        else:
            x = tl.load(of_x + group[:, None, None] * 32, mask=there & real_token[None, None, :], other=0)
        factor = scale.to(tl.float32)
        later = group[:, None] + SPLIT
        scale = tl.load(of_scales + later, mask=later < groups, other=0.0)

        points = (((points >> shift) & 15) + (128 if MAGIC else 0)).to(dtype)
        wide = tl.broadcast_to(points[:, :, None], [SPLIT, ROWS, 32])
        total = tl.zeros([SPLIT, ROWS, ACROSS], tl.float32)
        sums = tl.zeros([SPLIT, ROWS, ACROSS], tl.float32)
        total, sums = product(words, wide, x, total, sums, 0, LESS_0, RAW_0, CENTRED, MAGIC)
        total, sums = product(words, wide, x, total, sums, 1, LESS_1, RAW_1, CENTRED, MAGIC)
        total, sums = product(words, wide, x, total, sums, 2, LESS_2, RAW_2, CENTRED, MAGIC)
        total, sums = product(words, wide, x, total, sums, 3, LESS_3, RAW_3, CENTRED, MAGIC)
        if MAGIC and not CENTRED:
            total -= points.to(tl.float32)[:, :, None] * sums
        y += total * factor[:, :, None]
    whole = tl.sum(y, 0)
    at = y_ptr + token[None, :] * features + row[:, None]
    tl.store(at, whole.to(dtype), mask=real_row[:, None] & real_token[None, :])


def run(x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor) -> torch.Tensor:
    tokens, (features, groups) = x.shape[0], scales.shape
    y = torch.empty((tokens, features), dtype=x.dtype, device=x.device)
    across = 1 if tokens == 1 else 8 if tokens <= 8 else 16
    token_tiles = triton.cdiv(tokens, across)
    blocks = triton.cdiv(features, ROWS) * token_tiles
    warps = WARPS if blocks > FEW_BLOCKS else min(MANY_WARPS, 128 // across)  # more tokens, more registers
    split = min(warps, triton.next_power_of_2(groups))
    stages = min(STAGES, 1 + ROOM // (split * (64 * ROWS + 256 * across)))
    early = {"EARLY": True, "launch_pdl": True} if x.is_cuda else {"EARLY": False}  # not interpreted
    rows_kernel[(blocks,)](
        x.view(torch.int64), packed.view(torch.int16), scales, zeros, y, tokens, features, groups, token_tiles,
        ROWS=ROWS, SPLIT=split, TOKENS=across, STAGES=stages, CENTRED=CENTRED,
        MAGIC=x.is_cuda and x.dtype == torch.bfloat16, num_warps=split, **early,
    )  # fmt: skip
    return y
