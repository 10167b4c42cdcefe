"""Flash decoding: the tokens of a sequence are split over several blocks, and a second kernel joins their parts.

Hypothesis: a block for each head of a sequence leaves most of the device idle when a long sequence is still read and
the short ones are done. Splitting each sequence keeps all multiprocessors reading. With one
query a head, every row of a tile keeps a maximum, a sum and a result of its own, so no barrier stands between two
loads. Grouped heads use tensor cores, with weights as the sum of two 16-bit parts, which loses nothing of them.
Predicted: half of the cache at 80 % of copy bandwidth: 80 us at 32x8x8x4096x128 (floor 62), 6 us at
8x16x1x1024x64 (floor 4, and two launches).
"""

import torch
import triton
import triton.language as tl

BLOCKS = 1056
"""Blocks in all to aim for: four a multiprocessor of an H200."""
LEAST = 128
"""Tokens of the longest possible sequence below which a part is not split further."""
FIXED = 0
"""1: parts of one length, of which short sequences have fewer. 0: as many parts, but shorter ones."""
TILE = 32
TILE_GROUPED = 64
WARPS = 4
STAGES = 3


@triton.jit
def single_kernel(
    query, keys, values, lengths, y, sums, kv, context, dim, scale,
    SPLITS: tl.constexpr, TILE: tl.constexpr, D: tl.constexpr, FIXED: tl.constexpr,
):  # fmt: skip
    split, pair = tl.program_id(0), tl.program_id(1).to(tl.int64)
    length = tl.minimum(tl.load(lengths + pair // kv), context)
    part = tl.cdiv(tl.cdiv(context if FIXED else length, SPLITS), TILE) * TILE
    first = split * part
    last = tl.minimum(first + part, length)
    token, d = tl.arange(0, TILE), tl.arange(0, D)
    inside = d < dim
    q = tl.load(query + pair * dim + d, mask=inside, other=0.0).to(tl.float32) * scale
    largest = tl.full([TILE], -float("inf"), tl.float32)
    total = tl.zeros([TILE], tl.float32)
    result = tl.zeros([TILE, D], tl.float32)
    at = pair * context * dim + token[:, None] * dim + d[None, :]
    for start in range(first, last, TILE):
        there = start + token < last
        mask = there[:, None] & inside[None, :]
        k = tl.load(keys + at + start * dim, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(values + at + start * dim, mask=mask, other=0.0).to(tl.float32)
        score = tl.where(there, tl.sum(k * q[None, :], 1), -float("inf"))
        new = tl.maximum(largest, score)
        safe = tl.where(new == -float("inf"), 0.0, new)
        weight, old = tl.exp2(score - safe), tl.exp2(largest - safe)
        total = total * old + weight
        result = result * old[:, None] + weight[:, None] * v
        largest = new
    top = tl.max(largest, 0)
    share = tl.exp2(largest - tl.where(top == -float("inf"), 0.0, top))
    whole = tl.sum(total * share, 0)
    row = tl.sum(result * share[:, None], 0)
    if SPLITS == 1:
        tl.store(y + pair * dim + d, (row / whole).to(y.dtype.element_ty), mask=inside)
    else:
        tl.store(y + (pair * SPLITS + split) * dim + d, row, mask=inside)
        tl.store(sums + (pair * SPLITS + split) * 2, top)
        tl.store(sums + (pair * SPLITS + split) * 2 + 1, whole)


@triton.jit
def grouped_kernel(
    query, keys, values, lengths, y, sums, kv, group, context, dim, scale,
    SPLITS: tl.constexpr, TILE: tl.constexpr, D: tl.constexpr, G: tl.constexpr, FIXED: tl.constexpr,
    EXACT: tl.constexpr,
):  # fmt: skip
    split, pair = tl.program_id(0), tl.program_id(1).to(tl.int64)
    length = tl.minimum(tl.load(lengths + pair // kv), context)
    part = tl.cdiv(tl.cdiv(context if FIXED else length, SPLITS), TILE) * TILE
    first = split * part
    last = tl.minimum(first + part, length)
    token, d, head = tl.arange(0, TILE), tl.arange(0, D), tl.arange(0, G)
    inside = d < dim
    rows = pair * group + head
    of_heads = (head < group)[:, None] & inside[None, :]
    q = tl.load(query + rows[:, None] * dim + d[None, :], mask=of_heads, other=0.0)
    if EXACT:
        q = q.to(tl.float32)
    largest = tl.full([G], -float("inf"), tl.float32)
    total = tl.zeros([G], tl.float32)
    result = tl.zeros([G, D], tl.float32)
    at = pair * context * dim + token[:, None] * dim + d[None, :]
    for start in range(first, last, TILE):
        there = start + token < last
        mask = there[:, None] & inside[None, :]
        k = tl.load(keys + at + start * dim, mask=mask, other=0.0)
        v = tl.load(values + at + start * dim, mask=mask, other=0.0)
        if EXACT:
            k, v = k.to(tl.float32), v.to(tl.float32)
        score = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        score = tl.where(there[None, :], score, -float("inf"))
        new = tl.maximum(largest, tl.max(score, 1))
        safe = tl.where(new == -float("inf"), 0.0, new)
        weight, old = tl.exp2(score - safe[:, None]), tl.exp2(largest - safe)
        total = total * old + tl.sum(weight, 1)
        result *= old[:, None]
        if EXACT:
            result = tl.dot(weight, v, result, input_precision="ieee")
        else:
            high = weight.to(v.dtype)
            low = (weight - high.to(tl.float32)).to(v.dtype)
            result = tl.dot(high, v, result)
            result = tl.dot(low, v, result)
        largest = new
    if SPLITS == 1:
        row = result / total[:, None]
        tl.store(y + rows[:, None] * dim + d[None, :], row.to(y.dtype.element_ty), mask=of_heads)
    else:
        places = rows * SPLITS + split
        tl.store(y + places[:, None] * dim + d[None, :], result, mask=of_heads)
        tl.store(sums + places * 2, largest, mask=head < group)
        tl.store(sums + places * 2 + 1, total, mask=head < group)


@triton.jit
def join_kernel(parts, sums, y, dim, SPLITS: tl.constexpr, D: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    split, d = tl.arange(0, SPLITS), tl.arange(0, D)
    at = row * SPLITS + split
    largest, total = tl.load(sums + at * 2), tl.load(sums + at * 2 + 1)
    share = tl.exp2(largest - tl.max(largest, 0))
    mask = d < dim
    result = tl.load(parts + at[:, None] * dim + d[None, :], mask=mask[None, :], other=0.0)
    whole = tl.sum(total * share, 0)
    tl.store(y + row * dim + d, (tl.sum(result * share[:, None], 0) / whole).to(y.dtype.element_ty), mask=mask)


def run(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    batch, kv, context, dim = keys.shape
    heads = query.shape[1]
    group, pairs = heads // kv, batch * kv
    y = torch.empty_like(query)
    splits = max(1, min(BLOCKS // pairs, context // LEAST, 64))
    splits = 1 << (splits.bit_length() - 1)
    width = max(16, triton.next_power_of_2(dim))
    parts, sums = y, y
    if splits > 1:
        parts = query.new_empty(batch * heads, splits, dim, dtype=torch.float32)
        sums = query.new_empty(batch * heads, splits, 2, dtype=torch.float32)
    scale = dim**-0.5 * 1.4426950408889634
    if group == 1:
        single_kernel[(splits, pairs)](
            query, keys, values, lengths, parts, sums, kv, context, dim, scale,
            SPLITS=splits, TILE=TILE, D=width, FIXED=FIXED, num_warps=WARPS,
        )
    else:
        grouped_kernel[(splits, pairs)](
            query, keys, values, lengths, parts, sums, kv, group, context, dim, scale,
            SPLITS=splits, TILE=TILE_GROUPED, D=width, G=max(16, triton.next_power_of_2(group)), FIXED=FIXED,
            EXACT=query.dtype == torch.float32 or query.device.type == "cpu", num_warps=WARPS, num_stages=STAGES,
        )
    if splits > 1:
        join_kernel[(batch * heads,)](parts, sums, y, dim, SPLITS=splits, D=width, num_warps=1 if splits < 16 else 4)
    return y
