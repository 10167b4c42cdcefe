"""A tile of latents is loaded once and multiplied twice: as keys, and transposed as values. Sequences are split.

Hypothesis: query rows of a sequence, tokens times heads, are the rows of a product. Up to NARROW of them are its
columns instead: tokens of the cache are then the 64 rows that wgmma wants, nothing is padded, and the sum is 512 x 16,
64 registers a thread. More rows go in blocks of 64, whose sum of 64 x 512 fills half of a multiprocessor's registers.
TMA brings the tiles, without a pointer or a mask. Each sequence is split over so many blocks that one wave fills the
device; a second kernel joins the parts by their lse. Blocks of a sequence are neighbours in the grid, so that L2 has
the tile that one of them loaded.
Predicted: 45 us at 32x1x16, 190 at 32x16x16, 95 at 32x1x128, 1500 at 32x16x128 (floors 35, 92, 46 and 739 at 4.3 TB/s
and 790 TFLOP/s). Triton gives both groups of four warps all 64 rows of scores, so scores are multiplied twice: 1664
products a row and token in place of 1088, a third of them at 0.67 of the rate.
Metric: dram_pct to 80 % at 32x1x16, tensor_pct to 55 % at 32x16x128.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BLOCKS = 132
"""Blocks in all to aim for, one a multiprocessor: a tile ring fills its shared memory."""
LEAST = 128
"""Tokens of the longest possible sequence below which a part is not split further."""
NARROW = 16
"""Query rows of a sequence up to which they are columns of the product."""
TILE_NARROW = 64
STAGES_NARROW = 2
WARPS_NARROW = 4
ROWS = 64
TILE = 64
STAGES = 2
WARPS = 8

LATENT = tl.constexpr(512)
ROPE = tl.constexpr(64)
WIDTH = tl.constexpr(576)
LN2 = tl.constexpr(0.6931471805599453)


@triton.jit
def stretch(length, split, SPLITS: tl.constexpr, TILE: tl.constexpr):
    """First and last token of a part: equal numbers of tiles, the last parts perhaps fewer or none."""
    part = tl.cdiv(tl.cdiv(length, SPLITS), TILE) * TILE
    first = tl.minimum(split * part, length)
    return first, tl.minimum(first + part, length)


@triton.jit
def finite(top):
    """What to subtract of scores before their exponentials: infinite ones stay so, and none becomes NaN."""
    return tl.where(tl.abs(top) == float("inf"), 0.0, top)


@triton.jit
def narrow_kernel(
    query, latents, ropes, lengths, y, lse, tokens, heads, context, scale,
    SPLITS: tl.constexpr, TILE: tl.constexpr, ROWS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    split, b = tl.program_id(0), tl.program_id(1).to(tl.int64)
    rows = tokens * heads
    length = tl.minimum(tl.load(lengths + b), context)
    first, last = stretch(length, split, SPLITS, TILE)
    row, token, d, r = tl.arange(0, ROWS), tl.arange(0, TILE), tl.arange(0, LATENT), tl.arange(0, ROPE)
    inside = row < rows
    seen = tl.minimum(length - tokens + 1 + row // heads, last)
    q_at = query + (b * rows + row)[:, None] * WIDTH
    q = tl.load(q_at + d[None, :], mask=inside[:, None], other=0.0)
    q_rope = tl.load(q_at + LATENT + r[None, :], mask=inside[:, None], other=0.0)
    largest = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    result = tl.zeros([LATENT, ROWS], tl.float32)
    base = (b * context).to(tl.int32)
    for start in tl.range(first, last, TILE, num_stages=STAGES):
        k = latents.load([base + start, 0])
        k_rope = ropes.load([base + start, LATENT])
        score = tl.dot(k, tl.trans(q))
        score = tl.dot(k_rope, tl.trans(q_rope), score) * scale
        score = tl.where((start + token)[:, None] < seen[None, :], score, -float("inf"))
        new = tl.maximum(largest, tl.max(score, 0))
        safe = finite(new)
        weight, old = tl.exp2(score - safe[None, :]), tl.exp2(largest - safe)
        total = total * old + tl.sum(weight, 0)
        result = tl.dot(tl.trans(k), weight.to(k.dtype), result * old[None, :])
        largest = new
    share = 1 / (total if SPLITS == 1 else tl.where(total == 0.0, 1.0, total))  # of an empty part
    places = (b * rows + row) * SPLITS + split
    to = y + places[None, :] * LATENT + d[:, None]
    tl.store(to, (result * share[None, :]).to(y.dtype.element_ty), mask=inside[None, :])
    logs = largest + tl.log2(total)  # of two
    tl.store(lse + places, logs * LN2 if SPLITS == 1 else logs, mask=inside)


@triton.jit
def wide_kernel(
    query, latents, ropes, lengths, y, lse, tokens, heads, context, scale,
    SPLITS: tl.constexpr, TILE: tl.constexpr, ROWS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    block, split, b = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    rows = tokens * heads
    length = tl.minimum(tl.load(lengths + b), context)
    first, last = stretch(length, split, SPLITS, TILE)
    row, token, d, r = (
        block * ROWS + tl.arange(0, ROWS),
        tl.arange(0, TILE),
        tl.arange(0, LATENT),
        tl.arange(0, ROPE),
    )
    inside = row < rows
    seen = tl.minimum(length - tokens + 1 + row // heads, last)
    q_at = query + (b * rows + row)[:, None] * WIDTH
    q = tl.load(q_at + d[None, :], mask=inside[:, None], other=0.0)
    q_rope = tl.load(q_at + LATENT + r[None, :], mask=inside[:, None], other=0.0)
    largest = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    result = tl.zeros([ROWS, LATENT], tl.float32)
    base = (b * context).to(tl.int32)
    for start in tl.range(first, last, TILE, num_stages=STAGES):
        k = latents.load([base + start, 0])
        k_rope = ropes.load([base + start, LATENT])
        score = tl.dot(q, tl.trans(k))
        score = tl.dot(q_rope, tl.trans(k_rope), score) * scale
        score = tl.where((start + token)[None, :] < seen[:, None], score, -float("inf"))
        new = tl.maximum(largest, tl.max(score, 1))
        safe = finite(new)
        weight, old = tl.exp2(score - safe[:, None]), tl.exp2(largest - safe)
        total = total * old + tl.sum(weight, 1)
        result = tl.dot(weight.to(k.dtype), k, result * old[:, None])
        largest = new
    share = 1 / (total if SPLITS == 1 else tl.where(total == 0.0, 1.0, total))  # of an empty part
    places = (b * rows + row) * SPLITS + split
    to = y + places[:, None] * LATENT + d[None, :]
    tl.store(to, (result * share[:, None]).to(y.dtype.element_ty), mask=inside[:, None])
    logs = largest + tl.log2(total)  # of two
    tl.store(lse + places, logs * LN2 if SPLITS == 1 else logs, mask=inside)


@triton.jit
def join_kernel(parts, logs, y, lse, SPLITS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    split, d = tl.arange(0, SPLITS), tl.arange(0, LATENT)
    own = tl.load(logs + row * SPLITS + split)
    top = tl.max(own, 0)
    safe = finite(top)
    share = tl.exp2(own - safe)
    whole = tl.sum(share, 0)
    values = tl.load(parts + (row * SPLITS + split)[:, None] * LATENT + d[None, :])
    result = tl.sum(values * (share / whole)[:, None], 0)
    tl.store(y + row * LATENT + d, result.to(y.dtype.element_ty))
    tl.store(lse + row, (safe + tl.log2(whole)) * LN2)


def run(
    query: torch.Tensor, cache: torch.Tensor, lengths: torch.Tensor, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    batch, tokens, heads, _ = query.shape
    context, rows = cache.shape[1], tokens * heads
    y = query.new_empty(batch, tokens, heads, 512)
    lse = query.new_empty(batch, tokens, heads, dtype=torch.float32)
    narrow = rows <= NARROW
    blocks = 1 if narrow else triton.cdiv(rows, ROWS)
    splits = max(1, min(BLOCKS // (batch * blocks), context // LEAST, 64))
    splits = 1 << (splits.bit_length() - 1)
    parts, logs = y, lse
    if splits > 1:
        parts = query.new_empty(batch * rows * splits, 512, dtype=torch.float32)
        logs = query.new_empty(batch * rows * splits, dtype=torch.float32)
    tile = TILE_NARROW if narrow else TILE
    entries = cache.view(batch * context, 576)
    latents, ropes = (TensorDescriptor.from_tensor(entries, [tile, width]) for width in (512, 64))
    arguments = (query, latents, ropes, lengths, parts, logs, tokens, heads, context, scale * 1.4426950408889634)
    if narrow:
        narrow_kernel[(splits, batch)](
            *arguments, SPLITS=splits, TILE=TILE_NARROW, ROWS=max(16, triton.next_power_of_2(rows)),
            STAGES=STAGES_NARROW, num_warps=WARPS_NARROW,
        )  # fmt: skip
    else:
        wide_kernel[(blocks, splits, batch)](
            *arguments, SPLITS=splits, TILE=TILE, ROWS=ROWS, STAGES=STAGES, num_warps=WARPS
        )
    if splits > 1:
        join_kernel[(batch * rows,)](parts, logs, y, lse, SPLITS=splits, num_warps=4)
    return y, lse
