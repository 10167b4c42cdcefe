"""The largest of each group first: the k largest elements lie in the k groups whose largest ones are the k largest.

Hypothesis: a key holds an element's rank above its place, so no two are equal and one comparison orders both. A row is
cut into groups of equal length. If an element is one of the k largest, fewer than k groups have a larger one, so k
groups are enough to look at, and the row is read once. With sqrt(cols / k) elements a group, as many groups' keys are
sorted as elements of groups. Rows up to SHORT elements are a block's; longer ones take a kernel over tiles of all rows
for the groups, and a block a row for the rest.
Predicted: 30 us at 4096x4096 (floor 16), 100 at 64x1048576 (floor 62), both float32; 55 and 75 for bfloat16.
Metric: dram_pct to 60 % at 64x1048576-64-fp32.
"""

import torch
import triton
import triton.language as tl

SHORT = 8192
"""Elements of a row that a block sorts at a time."""
TILE = 4096
"""Elements of a long row whose groups a block reduces."""
MOST = 512
"""Elements that are chosen at a time: more come in several turns, each below the last one."""
LEAST_GROUP = 8

NOTHING = tl.constexpr(-(1 << 63))
"""Key below all others."""


@triton.jit
def keys_of(x, places):
    """Keys of elements: rank in the upper half, and below it the lower place first."""
    wide = x.to(tl.float32)
    bits = tl.where(wide == 0.0, 0.0, wide).to(tl.int32, bitcast=True)
    rank = tl.where(wide == wide, bits ^ ((bits >> 31) & 0x7FFFFFFF), 0x7FFFFFFF)
    return (rank.to(tl.int64) << 32) | (0xFFFFFFFF - places.to(tl.int64))


@triton.jit
def places_of(keys):
    return 0xFFFFFFFF - (keys & 0xFFFFFFFF)


@triton.jit
def load_keys(x, row, places, cols):
    inside = places < cols
    return tl.where(inside, keys_of(tl.load(x + row * cols + places, mask=inside, other=0.0), places), NOTHING)


@triton.jit
def merge(best, keys, K: tl.constexpr):
    """The K largest of two sets of keys; the second has at least K."""
    return tl.topk(tl.reshape(tl.join(best, tl.topk(keys, K)), [2 * K]), K)


@triton.jit
def store_best(x, values, indices, row, best, cols, first, k, K: tl.constexpr):
    """Write what the keys stand for as results from `first` on."""
    i, places = tl.arange(0, K), places_of(best)
    inside = (first + i < k) & (best != NOTHING)
    tl.store(indices + row * k + first + i, places, mask=inside)
    tl.store(values + row * k + first + i, tl.load(x + row * cols + places, mask=inside), mask=inside)


@triton.jit
def short_kernel(x, values, indices, cols, k, K: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    keys = load_keys(x, row, tl.arange(0, BLOCK), cols)
    if GROUP > 1:
        winners = tl.topk(tl.max(tl.reshape(keys, [BLOCK // GROUP, GROUP]), 1), K)
        # Groups of winners that are padding lie behind the row.
        groups = tl.where(winners == NOTHING, BLOCK // GROUP, places_of(winners) // GROUP)
        places = groups[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
        keys = tl.reshape(load_keys(x, row, places, cols), [K * GROUP])
    store_best(x, values, indices, row, tl.topk(keys, K), cols, 0, k, K)


@triton.jit
def group_kernel(x, largest, cols, groups, GROUP: tl.constexpr, TILE: tl.constexpr):
    """Write the largest key of each group; NOTHING behind the row."""
    tiles = tl.cdiv(groups, TILE // GROUP)
    row, tile = tl.program_id(0).to(tl.int64) // tiles, tl.program_id(0) % tiles
    keys = load_keys(x, row, tile.to(tl.int64) * TILE + tl.arange(0, TILE), cols)
    group = tile * (TILE // GROUP) + tl.arange(0, TILE // GROUP)
    tl.store(largest + row * groups + group, tl.max(tl.reshape(keys, [TILE // GROUP, GROUP]), 1), mask=group < groups)


@triton.jit
def winner_kernel(largest, winners, groups, K: tl.constexpr, BLOCK: tl.constexpr):
    """Write the K largest keys of groups."""
    row, i = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    best = tl.topk(tl.load(largest + row * groups + i, mask=i < groups, other=NOTHING), K)
    for start in range(BLOCK, groups, BLOCK):
        keys = tl.load(largest + row * groups + start + i, mask=start + i < groups, other=NOTHING)
        best = merge(best, keys, K)
    tl.store(winners + row * K + tl.arange(0, K), best)


@triton.jit
def chosen_kernel(
    x, winners, values, indices, cols, k, K: tl.constexpr, GROUP: tl.constexpr, AT_ONCE: tl.constexpr
):
    """Choose among the elements of the groups that won, AT_ONCE groups at a time."""
    row = tl.program_id(0).to(tl.int64)
    best = tl.full([K], NOTHING, tl.int64)
    for start in range(0, K, AT_ONCE):
        winner = tl.load(winners + row * K + start + tl.arange(0, AT_ONCE))
        first = tl.where(winner == NOTHING, cols, places_of(winner) // GROUP * GROUP)
        places = first[:, None] + tl.arange(0, GROUP)[None, :]
        best = merge(best, tl.reshape(load_keys(x, row, places, cols), [AT_ONCE * GROUP]), K)
    store_best(x, values, indices, row, best, cols, 0, k, K)


@triton.jit
def turns_kernel(x, values, indices, cols, k, K: tl.constexpr, BLOCK: tl.constexpr):
    """Choose K at a time, each time below the last one, reading the whole row."""
    row, i = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    most = tl.full([], (1 << 63) - 1, tl.int64)
    for first in range(0, k, K):
        best = tl.full([K], NOTHING, tl.int64)
        for start in range(0, cols, BLOCK):
            keys = load_keys(x, row, start + i, cols)
            best = merge(best, tl.where(keys <= most, keys, NOTHING), K)
        store_best(x, values, indices, row, best, cols, first, k, K)
        most = tl.min(best) - 1


def group_of(cols: int, kept: int) -> int:
    """Elements of a group, a power of two near sqrt(cols / kept)."""
    return 1 << ((cols // kept).bit_length() // 2)


def run(x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    rows, cols = x.shape
    k = min(k, cols)
    values = torch.empty(rows, k, dtype=x.dtype, device=x.device)
    indices = torch.empty(rows, k, dtype=torch.int64, device=x.device)
    if not values.numel():
        return values, indices
    kept = max(2, triton.next_power_of_2(k))
    if cols <= SHORT:
        block = max(16, triton.next_power_of_2(cols))
        group = group_of(block, kept)
        if group < LEAST_GROUP:
            group = 1
        warps = 4 if block <= 4096 else 8
        short_kernel[(rows,)](x, values, indices, cols, k, K=kept, GROUP=group, BLOCK=block, num_warps=warps)
    elif kept > MOST:
        turns_kernel[(rows,)](x, values, indices, cols, k, K=MOST, BLOCK=SHORT, num_warps=8)
    else:
        group = min(group_of(triton.next_power_of_2(cols), kept), SHORT // MOST * 8)
        groups = triton.cdiv(cols, group)
        largest = torch.empty(rows, groups, dtype=torch.int64, device=x.device)
        winners = torch.empty(rows, kept, dtype=torch.int64, device=x.device)
        tiles = triton.cdiv(groups, TILE // group)
        group_kernel[(rows * tiles,)](x, largest, cols, groups, GROUP=group, TILE=TILE, num_warps=4)
        winner_kernel[(rows,)](largest, winners, groups, K=kept, BLOCK=SHORT, num_warps=16)
        at_once = min(kept, max(SHORT // group, triton.cdiv(kept, group)))
        chosen_kernel[(rows,)](
            x, winners, values, indices, cols, k, K=kept, GROUP=group, AT_ONCE=at_once, num_warps=16
        )
    return values, indices
