"""The batched product of draft 1 in a grid that stays: each block streams its tiles through one pipeline.

Hypothesis: blocks of draft 1 start with an empty pipeline and end with an idle one, and the last wave of a grid that
does not fit evenly runs at a part of the bandwidth. Here a block has a run of tiles, and steps over k and over tiles
are one loop: the copies of the next tile are under way while a tile's sums meet. Blocks begin once a launch, and as
many are launched as share the tiles evenly: all end together.
Predicted: 3 % below draft 1 at 1x28672x8192 and 1x11008x4096, nothing at 16x4096x4096, where a block has one tile.
Metric: time_us at 1x28672x8192.
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
STAGES = 4
CENTRED = 1
ROOM = 176 * 1024
"""Bytes of shared memory for the stages of copies; sums take some more."""
RESIDENT = 4


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
def tiles_kernel(
    x_ptr, packed_ptr, scales_ptr, zeros_ptr, y_ptr, tokens, features, groups, token_tiles, tiles,
    ROWS: tl.constexpr, SPLIT: tl.constexpr, TOKENS: tl.constexpr, STAGES: tl.constexpr, CENTRED: tl.constexpr,
    MAGIC: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    ACROSS: tl.constexpr = TOKENS if TOKENS > 8 else 8  # columns of a product
    part, word = tl.arange(0, SPLIT), tl.arange(0, 32)
    dtype: tl.constexpr = scales_ptr.dtype.element_ty
    begin = (tl.program_id(0).to(tl.int64) * tiles // tl.num_programs(0)).to(tl.int32)
    end = ((tl.program_id(0) + 1).to(tl.int64) * tiles // tl.num_programs(0)).to(tl.int32)
    steps = (groups + SPLIT - 1) // SPLIT

    if EARLY:
        gdc_wait()
        gdc_launch_dependents()
    y = tl.zeros([SPLIT, ROWS, ACROSS], tl.float32)
    near = tl.minimum((begin // token_tiles * ROWS + tl.arange(0, ROWS)).to(tl.int64), features - 1)
    scale = tl.load(scales_ptr + near[None, :] * groups + part[:, None], mask=part[:, None] < groups, other=0.0)
    for step in tl.range(0, (end - begin) * steps, num_stages=STAGES):
        tile, turn = begin + step // steps, step % steps
        row = (tile // token_tiles * ROWS + tl.arange(0, ROWS)).to(tl.int64)
        token = (tile % token_tiles * ACROSS + tl.arange(0, ACROSS)).to(tl.int64)
        near = tl.minimum(row, features - 1)
        group = turn * SPLIT + part
        there = group[:, None, None] < groups
        of_words = packed_ptr + near[None, :, None] * (groups * 32) + word[None, None, :]
        words = tl.load(of_words + group[:, None, None] * 32, mask=there, other=0)
        of_zeros = zeros_ptr + (near // 8)[None, :] * groups
        points = tl.load(of_zeros + group[:, None], mask=group[:, None] < groups, other=0)
        if TOKENS == 1:  # the same in all columns: an eighth of the shared memory
            x = tl.load(x_ptr + word[None, :, None] + group[:, None, None] * 32, mask=there, other=0)
            x = tl.broadcast_to(x, [SPLIT, 32, ACROSS])
        else:
            of_x = x_ptr + token[None, None, :] * (groups * 32) + word[None, :, None]
            x = tl.load(of_x + group[:, None, None] * 32, mask=there & (token < tokens)[None, None, :], other=0)
        factor = scale.to(tl.float32)
        ahead = tl.minimum((begin + (step + 1) // steps) // token_tiles * ROWS + tl.arange(0, ROWS), features - 1)
        later = ((step + 1) % steps * SPLIT + part)[:, None]
        scale = tl.load(scales_ptr + ahead.to(tl.int64)[None, :] * groups + later, mask=later < groups, other=0.0)

        shift = (near % 8).to(tl.int32)[None, :] * 4
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
        if turn == steps - 1:
            at = y_ptr + token[None, :] * features + row[:, None]
            tl.store(at, tl.sum(y, 0).to(dtype), mask=(row < features)[:, None] & (token < tokens)[None, :])
            y = tl.zeros([SPLIT, ROWS, ACROSS], tl.float32)


def multiprocessors(device: torch.device) -> int:
    """Few where kernels are interpreted, so that a block has several tiles."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2


def run(x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor) -> torch.Tensor:
    tokens, (features, groups) = x.shape[0], scales.shape
    y = torch.empty((tokens, features), dtype=x.dtype, device=x.device)
    across = 1 if tokens == 1 else 8 if tokens <= 8 else 16
    token_tiles = triton.cdiv(tokens, across)
    tiles = triton.cdiv(features, ROWS) * token_tiles
    warps = WARPS if tiles > FEW_BLOCKS else min(MANY_WARPS, 128 // across)  # more tokens, more registers
    split = min(warps, triton.next_power_of_2(groups))
    stages = min(STAGES, 1 + ROOM // (split * (64 * ROWS + 256 * across)))
    early = {"EARLY": True, "launch_pdl": True} if x.is_cuda else {"EARLY": False}  # not interpreted
    run_of_tiles = triton.cdiv(tiles, multiprocessors(x.device) * RESIDENT)  # the same in all blocks but a few
    tiles_kernel[(triton.cdiv(tiles, run_of_tiles),)](
        x.view(torch.int64), packed.view(torch.int16), scales, zeros, y, tokens, features, groups, token_tiles, tiles,
        ROWS=ROWS, SPLIT=split, TOKENS=across, STAGES=stages, CENTRED=CENTRED,
        MAGIC=x.is_cuda and x.dtype == torch.bfloat16, num_warps=split, **early,
    )  # fmt: skip
    return y
