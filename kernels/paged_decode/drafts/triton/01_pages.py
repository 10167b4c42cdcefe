"""Heads of a group and new tokens are the rows of one product; sequences are split, and their parts joined.

Hypothesis: the cache is read once, which bounds one and four new tokens; a tile of the cache serves all rows of its
head. Up to NARROW rows they are the columns of products whose rows are tokens of the cache, so that nothing is padded.
Triton 3.6 gives wrong sums there where it does not know that rows of the cache are aligned; such heads take the other way.
A tile finds its pages by the table, a load for each token that the next tiles' copies hide. Two blocks a
multiprocessor have copies under way for each other.
Predicted: 145, 150 and 175 us at 1, 4 and 16 tokens of 32 full sequences of 4096 (floors 125, 126 and 127), and 300 us
where lengths are 1k to 16k (floor 266).
Metric: dram_pct to 80 % at 32x1x8x8x128-256x16.
"""

import torch
import triton
import triton.language as tl

BLOCKS = 264
"""Blocks in all to aim for, two a multiprocessor."""
LONG = 4096
"""Tokens of a part at most, so that long sequences end with the others."""
LEAST = 256
"""Tokens of the longest possible sequence below which a part is not split further."""
NARROW = 32
"""Rows up to which they are columns of the product."""
VECTOR = 16
"""Divisor of a head's size by which Triton knows that its rows are aligned."""
TILE = 64
STAGES = 3
WARPS = 4


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
def attend_kernel(
    query, keys, values, table, lengths, y, logs, tokens, kv, group, slots, page, dim, scale,
    SPLITS: tl.constexpr, TILE: tl.constexpr, ROWS: tl.constexpr, DIM: tl.constexpr, NARROW: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    split, pair = tl.program_id(0) % SPLITS, tl.program_id(0) // SPLITS
    head, b = pair % kv, (pair // kv).to(tl.int64)
    rows = tokens * group
    length = tl.minimum(tl.load(lengths + b), slots * page)
    first, last = stretch(length, split, SPLITS, TILE)
    row, token, d = tl.arange(0, ROWS), tl.arange(0, TILE), tl.arange(0, DIM)
    inside, whole = row < rows, d < dim
    seen = tl.minimum(length - tokens + 1 + row // group, last)
    places = ((b * tokens + row // group) * kv + head) * group + row % group
    q = tl.load(query + places[:, None] * dim + d[None, :], mask=inside[:, None] & whole[None, :], other=0.0)
    largest = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    if NARROW:
        result = tl.zeros([DIM, ROWS], tl.float32)
    else:
        result = tl.zeros([ROWS, DIM], tl.float32)
    for start in tl.range(first, last, TILE, num_stages=STAGES):
        place = start + token
        there = place < last
        at = tl.load(table + b * slots + place // page, mask=there, other=0).to(tl.int64)
        at = ((at * page + place % page) * kv + head) * dim
        mask = there[:, None] & whole[None, :]
        k = tl.load(keys + at[:, None] + d[None, :], mask=mask, other=0.0)
        v = tl.load(values + at[:, None] + d[None, :], mask=mask, other=0.0)
        if NARROW:
            score = tl.dot(k, tl.trans(q)) * scale
            score = tl.where(place[:, None] < seen[None, :], score, -float("inf"))
            new = tl.maximum(largest, tl.max(score, 0))
            safe = finite(new)
            weight, old = tl.exp2(score - safe[None, :]), tl.exp2(largest - safe)
            total = total * old + tl.sum(weight, 0)
            result = tl.dot(tl.trans(v), weight.to(v.dtype), result * old[None, :])
        else:
            score = tl.dot(q, tl.trans(k)) * scale
            score = tl.where(place[None, :] < seen[:, None], score, -float("inf"))
            new = tl.maximum(largest, tl.max(score, 1))
            safe = finite(new)
            weight, old = tl.exp2(score - safe[:, None]), tl.exp2(largest - safe)
            total = total * old + tl.sum(weight, 1)
            result = tl.dot(weight.to(v.dtype), v, result * old[:, None])
        largest = new
    share = 1 / (total if SPLITS == 1 else tl.where(total == 0.0, 1.0, total))  # of an empty part
    to = y + (places * SPLITS + split)[:, None] * dim + d[None, :]
    if NARROW:
        result = tl.trans(result * share[None, :])
    else:
        result = result * share[:, None]
    tl.store(to, result.to(y.dtype.element_ty), mask=inside[:, None] & whole[None, :])
    if SPLITS > 1:
        tl.store(logs + places * SPLITS + split, largest + tl.log2(total), mask=inside)


@triton.jit
def join_kernel(parts, logs, y, dim, SPLITS: tl.constexpr, DIM: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    split, d = tl.arange(0, SPLITS), tl.arange(0, DIM)
    own = tl.load(logs + row * SPLITS + split)
    share = tl.exp2(own - finite(tl.max(own, 0)))
    at = (row * SPLITS + split)[:, None] * dim + d[None, :]
    values = tl.load(parts + at, mask=d[None, :] < dim, other=0.0)
    result = tl.sum(values * (share / tl.sum(share, 0))[:, None], 0)
    tl.store(y + row * dim + d, result.to(y.dtype.element_ty), mask=d < dim)


def splits_of(batch: int, kv: int, context: int) -> int:
    """Parts of a sequence, a power of two: as many as fill the device, or keep parts of the longest short."""
    parts = max(-(-BLOCKS // (batch * kv)) if batch * kv < BLOCKS // 2 else 1, -(-context // LONG))
    return 1 << (max(1, min(parts, context // LEAST, 64)).bit_length() - 1)


def run(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor,
    scale: float,
) -> torch.Tensor:  # fmt: skip
    batch, tokens, heads, dim = query.shape
    _, page, kv, _ = keys.shape
    slots, rows = table.shape[1], tokens * (heads // kv)
    y = torch.empty_like(query)
    splits = splits_of(batch, kv, slots * page)
    parts, logs = y, lengths
    if splits > 1:
        parts = query.new_empty(batch * tokens * heads * splits, dim, dtype=torch.float32)
        logs = query.new_empty(batch * tokens * heads * splits, dtype=torch.float32)
    width = max(16, triton.next_power_of_2(dim))
    attend_kernel[(splits * kv * batch,)](
        query, keys, values, table, lengths, parts, logs, tokens, kv, heads // kv, slots, page, dim,
        scale * 1.4426950408889634, SPLITS=splits, TILE=TILE, ROWS=max(16, triton.next_power_of_2(rows)), DIM=width,
        NARROW=rows <= NARROW and dim % VECTOR == 0, STAGES=STAGES, num_warps=WARPS if rows <= 64 else 2 * WARPS,
    )  # fmt: skip
    if splits > 1:
        join_kernel[(batch * tokens * heads,)](parts, logs, y, dim, SPLITS=splits, DIM=width, num_warps=4)
    return y
