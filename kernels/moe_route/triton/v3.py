"""MoE routing in one launch: the blocks wait for each other once, between choosing and placing.

Hypothesis: at T = 16 and 1024 most of the time is two launches and their ramps. At most 128 blocks, all
resident on 132 multiprocessors, can wait for each other at a counter in memory (1 us) instead of a second
launch (1 to 2 us in a graph, 5 eagerly). Tiles follow T, so that 1024 tokens fill 128 blocks with a warp each
token.
Predicted in a CUDA graph, us: T = 16 from 6 to 4.5; 1024 from 7.5 to 6; 8192 from 18 to 17. Eager calls save 5 us.
Metric: one kernel; smsp__average_warps_issue_stalled_long_scoreboard small but for the wait.
Off a GPU, where blocks run one after the other, the same kernel runs its two halves in two launches.
"""

import torch
import triton
import triton.language as tl

MOST_BLOCKS = 128
OWNERS = 16
"""Blocks of the permutation that are padded at a time."""

_scratch: dict[tuple[object, ...], tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = {}


@triton.jit
def as_key(x):
    """Integers in the order of the floats."""
    bits = x.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def open_groups(biased, TILE: tl.constexpr):
    """Biased scores as keys; the lowest integer where the group is out: (TILE, 256)."""
    LOWEST: tl.constexpr = -2147483648
    grouped = tl.reshape(biased, [TILE, 8, 32])
    member = tl.arange(0, 32)[None, None, :]
    best = tl.max(grouped, 2)
    first = tl.min(tl.where(grouped == best[:, :, None], member, 32), 2)
    second = tl.max(tl.where(member == first[:, :, None], -float("inf"), grouped), 2)
    score = best + second
    group = tl.arange(0, 8)
    other = score[:, None, :]
    mine = score[:, :, None]
    earlier = (other == mine) & (group[None, None, :] < group[None, :, None])
    rank = tl.sum(((other > mine) | earlier).to(tl.int32), 2)
    keys = tl.where((rank < 4)[:, :, None], as_key(grouped), LOWEST)
    return tl.reshape(keys, [TILE, 256])


@triton.jit
def choose(biased, TILE: tl.constexpr):
    """Experts of each token, best first: (TILE, 8); and whether an expert was chosen: (TILE, 256)."""
    LOWEST: tl.constexpr = -2147483648
    expert, column = tl.arange(0, 256), tl.arange(0, 8)
    keys = open_groups(biased, TILE)
    left = keys
    ids = tl.zeros([TILE, 8], tl.int32)
    for i in tl.static_range(8):
        best = tl.max(left, 1)
        which = tl.min(tl.where(left == best[:, None], expert[None, :], 256), 1)
        left = tl.where(expert[None, :] == which[:, None], LOWEST, left)
        ids = tl.where(column[None, :] == i, which[:, None], ids)
    return ids, left != keys


@triton.jit
def route_tile(
    logits_ptr, weights_ptr, ids_ptr, bias, token, tokens, scale, SOFTMAX: tl.constexpr, TILE: tl.constexpr
):
    """Write weights and experts of a tile's tokens; its experts by route, and how often each occurs."""
    expert, column = tl.arange(0, 256), tl.arange(0, 8)
    inside = (token < tokens)[:, None]
    x = tl.load(logits_ptr + token[:, None] * 256 + expert[None, :], mask=inside, other=0.0).to(tl.float32)
    if SOFTMAX:
        top = tl.max(x, 1)[:, None]
        score = tl.exp(x - top)
        whole = tl.sum(score, 1)[:, None]
        score = score / whole
    else:
        score = 1.0 / (1.0 + tl.exp(-x))
    ids, taken = choose(score + bias[None, :], TILE)
    chosen = tl.load(logits_ptr + token[:, None] * 256 + ids, mask=inside, other=0.0).to(tl.float32)
    if SOFTMAX:
        chosen = tl.exp(chosen - top) / whole
    else:
        chosen = 1.0 / (1.0 + tl.exp(-chosen))
    place = token[:, None] * 8 + column[None, :]
    tl.store(weights_ptr + place, chosen / tl.sum(chosen, 1)[:, None] * scale, mask=inside)
    tl.store(ids_ptr + place, ids, mask=inside)
    return tl.reshape(ids, [TILE * 8]), tl.sum((taken & inside).to(tl.int32), 0)


@triton.jit
def ranks_of(ids, TILE: tl.constexpr):
    """How many earlier tokens of the tile chose the same expert; a token chooses none twice."""
    token = tl.arange(0, TILE * 8) // 8
    same = (ids[:, None] == ids[None, :]) & (token[:, None] < token[None, :])
    return tl.sum(same.to(tl.int32), 0)  # along this axis a thread adds up most by itself


@triton.jit
def route(
    logits_ptr, bias_ptr, weights_ptr, ids_ptr, ranks_ptr, counts_ptr, block, tokens, scale,
    SOFTMAX: tl.constexpr, TILES: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Choose for the tokens of a block; rank them in it; write its counts."""
    expert = tl.arange(0, 256)
    bias = tl.load(bias_ptr + expert)
    counts = tl.zeros([256], tl.int32)
    for tile in range(TILES):
        first = (block * TILES + tile) * TILE
        ids, more = route_tile(
            logits_ptr, weights_ptr, ids_ptr, bias, first + tl.arange(0, TILE), tokens, scale, SOFTMAX, TILE
        )
        place = first * 8 + tl.arange(0, TILE * 8)
        inside = place < tokens * 8
        tl.store(ranks_ptr + place, ranks_of(ids, TILE) + tl.gather(counts, ids, 0), mask=inside)
        counts += more
    tl.store(counts_ptr + block * 256 + expert, counts.to(tl.uint8))


@triton.jit
def counted(counts_ptr, block, blocks, CHUNK: tl.constexpr):
    """Routes of each expert in all blocks, and in the blocks before this one."""
    expert = tl.arange(0, 256)
    total = tl.zeros([256], tl.int32)
    before = tl.zeros([256], tl.int32)
    for start in range(0, blocks, CHUNK):
        other = start + tl.arange(0, CHUNK)
        where = counts_ptr + other[:, None] * 256 + expert[None, :]
        count = tl.load(where, mask=(other < blocks)[:, None], other=0, cache_modifier=".cg").to(tl.int32)
        total += tl.sum(count, 0)
        before += tl.sum(tl.where((other < block)[:, None], count, 0), 0)
    return total, before


@triton.jit
def pad(
    sorted_ptr,
    owners_ptr,
    starts,
    total,
    ends,
    part,
    parts,
    routes,
    length,
    BLOCK: tl.constexpr,
    OWNERS: tl.constexpr,
):
    """This part's share of the blocks: whose they are, and `routes` where no route will stand."""
    slots = tl.cdiv(length, BLOCK)
    each = tl.cdiv(slots, parts)
    for begin in range(0, each, OWNERS):
        lane = begin + tl.arange(0, OWNERS)
        slot = part * each + lane
        owner = tl.sum((ends[None, :] <= (slot * BLOCK)[:, None]).to(tl.int32), 1)
        inside = (lane < each) & (slot < slots)
        tl.store(owners_ptr + slot, tl.where(owner < 256, owner, -1), mask=inside)
        limit = tl.gather(starts + total, tl.minimum(owner, 255), 0)
        limit = tl.where(owner < 256, limit, 0)
        place = (slot * BLOCK)[:, None] + tl.arange(0, BLOCK)[None, :]
        empty = inside[:, None] & (place >= limit[:, None]) & (place < length)
        tl.store(sorted_ptr + place, tl.zeros([OWNERS, BLOCK], tl.int32) + routes, mask=empty)


@triton.jit
def place(
    ids_ptr, ranks_ptr, counts_ptr, totals_ptr, sorted_ptr, owners_ptr, padded_ptr, block, blocks, tokens, length,
    BLOCK: tl.constexpr, TOKENS: tl.constexpr, OWNERS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Put the routes of a block where they belong, and pad this block's share."""
    expert = tl.arange(0, 256)
    total, before = counted(counts_ptr, block, blocks, CHUNK)
    padded = (total + BLOCK - 1) // BLOCK * BLOCK
    ends = tl.cumsum(padded, 0)
    starts = ends - padded
    if block == 0:
        tl.store(totals_ptr + expert, total)
        tl.store(padded_ptr, tl.sum(padded, 0))
    from_ = block * TOKENS * 8 + tl.arange(0, TOKENS * 8)
    inside = from_ < tokens * 8
    ids = tl.load(ids_ptr + from_, mask=inside, other=0)
    ranks = tl.load(ranks_ptr + from_, mask=inside, other=0)
    tl.store(sorted_ptr + tl.gather(starts + before, ids, 0) + ranks, from_, mask=inside)
    pad(sorted_ptr, owners_ptr, starts, total, ends, block, blocks, tokens * 8, length, BLOCK, OWNERS)


@triton.jit
def wait_for_all(counters_ptr, blocks):
    """Go on when every block is here; the last to see that sets the counters back for the next launch."""
    tl.debug_barrier()
    tl.atomic_add(counters_ptr, 1, sem="release")
    while tl.atomic_add(counters_ptr, 0, sem="acquire") < blocks:
        pass
    if tl.atomic_add(counters_ptr + 1, 1, sem="relaxed") == blocks - 1:
        tl.store(counters_ptr + 1, 0)
        tl.store(counters_ptr, 0)
    tl.debug_barrier()


@triton.jit
def moe_route_kernel(
    logits_ptr, bias_ptr, weights_ptr, ids_ptr, ranks_ptr, counts_ptr, counters_ptr, totals_ptr, sorted_ptr,
    owners_ptr, padded_ptr, tokens, scale, length,
    SOFTMAX: tl.constexpr, TILES: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr, OWNERS: tl.constexpr,
    CHUNK: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr,
):  # fmt: skip
    block, blocks = tl.program_id(0), tl.num_programs(0)
    if FIRST:
        route(
            logits_ptr, bias_ptr, weights_ptr, ids_ptr, ranks_ptr, counts_ptr, block, tokens, scale,
            SOFTMAX, TILES, TILE,
        )  # fmt: skip
    if FIRST and SECOND:
        wait_for_all(counters_ptr, blocks)
    if SECOND:
        place(
            ids_ptr, ranks_ptr, counts_ptr, totals_ptr, sorted_ptr, owners_ptr, padded_ptr, block, blocks, tokens,
            length, BLOCK, TILE * TILES, OWNERS, CHUNK,
        )  # fmt: skip


def scratch(logits, tokens, blocks):
    """Ranks, the blocks' counts and zeroed counters, one set a stream: kernels of one stream never overlap."""
    stream = torch.cuda.current_stream(logits.device).cuda_stream if logits.is_cuda else 0
    key = (logits.device, stream, tokens, blocks)
    if key not in _scratch:
        if len(_scratch) > 64:
            _scratch.clear()
        ranks = torch.empty(tokens * 8, dtype=torch.int32, device=logits.device)
        counts = torch.empty(blocks * 256, dtype=torch.uint8, device=logits.device)
        _scratch[key] = (ranks, counts, torch.zeros(2, dtype=torch.int32, device=logits.device))
    return _scratch[key]


def outputs(logits, block_size):
    tokens, experts = logits.shape
    length = tokens * 8 + experts * (block_size - 1)
    slots = -(-length // block_size)
    whole = torch.empty(tokens * 8 + experts + length + slots + 1, dtype=torch.int32, device=logits.device)
    sizes = (tokens * 8, experts, length, slots, 1)
    ids, counts, sorted_ids, owners, padded = whole.split(sizes)
    weights = torch.empty((tokens, 8), dtype=torch.float32, device=logits.device)
    return weights, ids.view(tokens, 8), counts, sorted_ids, owners, padded


def run(logits, bias, scale, softmax, block_size):
    tokens = logits.shape[0]
    tile = 2 if tokens <= 64 else 8 if tokens <= 8 * MOST_BLOCKS else 16
    tiles = triton.next_power_of_2(triton.cdiv(tokens, tile * MOST_BLOCKS))
    assert tile * tiles < 256, "counts of a block are bytes: at most 16,384 tokens"
    blocks = triton.cdiv(tokens, tile * tiles)
    found = weights, ids, counts, sorted_ids, owners, padded = outputs(logits, block_size)
    ranks, block_counts, counters = scratch(logits, tokens, blocks)
    for first, second in ((True, True),) if logits.is_cuda else ((True, False), (False, True)):
        moe_route_kernel[(blocks,)](
            logits, bias, weights, ids, ranks, block_counts, counters, counts, sorted_ids, owners, padded, tokens,
            scale, sorted_ids.numel(), SOFTMAX=softmax, TILES=tiles, TILE=tile, BLOCK=block_size, OWNERS=OWNERS,
            CHUNK=min(32, triton.next_power_of_2(blocks)), FIRST=first, SECOND=second,
            num_warps={2: 4, 8: 8, 16: 16}[tile],
        )  # fmt: skip
    return found
