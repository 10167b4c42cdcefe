"""A share of rows for each block so that one wave of blocks takes all of them; tensor cores, weights as M.

Hypothesis: the product is bound by reading the weights once, so what costs time is what is not streaming: a last
wave of a few tiles, a second launch, a second pass. Each block takes n / 132 rows, rounded up to 16 (112, 144 and
224 of 14336, 18432 and 28672: 128 blocks), and streams them through shared memory; rows beyond its share are
masked and move nothing. Where that leaves fewer than 64 rows (2112 is 132 x 16), k is split, and the last block of
a tile adds the parts in their order. One or two tokens: dot products on CUDA cores, four rows a block.
Predicted: 29, 63, 9.5 and 112 us (floors 27.3, 61.6, 7.1, 109.8). Metric: dram_pct to 90 %.
"""

import torch
import triton
import triton.language as tl

DOT_UP_TO = 2
"""Most tokens that CUDA cores take."""
DOT_ROWS = 4
DOT_K = 1024
DOT_STAGES = 3
DOT_WARPS = 4

PER_SM = 1
"""Blocks that share a multiprocessor."""
BLOCK_K = 64
STAGES = 12
"""At most: as many as shared memory has room for."""
WARPS = 8
LEAST_ROWS = 64
"""Rows of a block below which k is split; so is it where they are fewer than ROWS_A_TOKEN for each token, because
every block reads the tokens too."""
ROWS_A_TOKEN = 2
MOST_SPLITS = 8
MOST_ROWS = 256
SHARED = 224 * 1024
"""Bytes of shared memory that a multiprocessor gives its blocks, less what the system takes."""

_counters: dict[tuple[torch.device, int], torch.Tensor] = {}


@triton.jit
def eights(product, ROWS: tl.constexpr, BK: tl.constexpr):
    """Sums of 8 neighbours, which one thread has."""
    return tl.sum(tl.reshape(product, (ROWS, BK // 8, 8)), 2)


@triton.jit
def dot_kernel(
    x_ptr, w_ptr, y_ptr, N, K, TWO: tl.constexpr, ROWS: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr
):
    """One token, or two: a block's rows of w are each read once."""
    first = tl.program_id(0).to(tl.int64) * ROWS
    row, k = tl.arange(0, ROWS), tl.arange(0, BK)
    inside = first + row < N
    w_at = w_ptr + first * K
    one = tl.zeros((ROWS, BK // 8), tl.float32)
    two = tl.zeros((ROWS, BK // 8), tl.float32)
    for start in tl.range(0, K, BK, num_stages=STAGES):
        some = start + k < K
        at = w_at + start + (row[:, None] * K + k[None, :])
        w = tl.load(at, mask=inside[:, None] & some[None, :], other=0.0, eviction_policy="evict_first")
        w = w.to(tl.float32)
        one += eights(w * tl.load(x_ptr + start + k, mask=some, other=0.0).to(tl.float32)[None, :], ROWS, BK)
        if TWO:
            two += eights(
                w * tl.load(x_ptr + K + start + k, mask=some, other=0.0).to(tl.float32)[None, :], ROWS, BK
            )
    tl.store(y_ptr + first + row, tl.sum(one, 1).to(y_ptr.dtype.element_ty), mask=inside)
    if TWO:
        tl.store(y_ptr + N + first + row, tl.sum(two, 1).to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def product_kernel(
    x_ptr, w_ptr, y_ptr, partial_ptr, counter_ptr, M, N, K, rows, span,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLITS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """`rows` rows of w, `span` columns of k, BM tokens."""
    tile, part = tl.program_id(0), tl.program_id(1)
    first, first_m = tile.to(tl.int64) * rows, tl.program_id(2) * BM
    n, m, k = tl.arange(0, BN), tl.arange(0, BM), tl.arange(0, BK)
    inside = (n < rows) & (first + n < N)
    w_at = w_ptr + first * K + part * span
    x_at = x_ptr + first_m.to(tl.int64) * K + part * span
    left = tl.minimum(span, K - part * span)
    acc = tl.zeros((BN, BM), tl.float32)
    for start in tl.range(0, left, BK, num_stages=STAGES):
        some = start + k < left
        w = tl.load(w_at + start + (n[:, None] * K + k[None, :]), mask=inside[:, None] & some[None, :], other=0.0)
        x = tl.load(
            x_at + start + (m[None, :] * K + k[:, None]),
            mask=(first_m + m < M)[None, :] & some[:, None],
            other=0.0,
        )
        acc = tl.dot(w, x, acc)

    y_at = y_ptr + first_m.to(tl.int64) * N + first + (m[None, :].to(tl.int64) * N + n[:, None])
    kept = inside[:, None] & (first_m + m < M)[None, :]
    if SPLITS == 1:
        tl.store(y_at, acc.to(y_ptr.dtype.element_ty), mask=kept)
    else:
        group = tile + tl.num_programs(0) * tl.program_id(2)
        parts_at = partial_ptr + group.to(tl.int64) * (SPLITS * BN * BM) + (n[:, None] * BM + m[None, :])
        tl.store(parts_at + part * (BN * BM), acc)
        tl.debug_barrier()
        if tl.atomic_add(counter_ptr + group, 1, sem="acq_rel") == SPLITS - 1:
            tl.store(counter_ptr + group, 0)  # for the next launch
            total = tl.zeros((BN, BM), tl.float32)
            for other in tl.static_range(SPLITS):
                total += tl.load(parts_at + other * (BN * BM), cache_modifier=".cg")
            tl.store(y_at, total.to(y_ptr.dtype.element_ty), mask=kept)


def share(n: int, k: int, tokens: int, groups: int, blocks: int) -> tuple[int, int]:
    """Rows of a block and parts of k: as few parts as give a block enough rows, in one wave of `blocks`."""
    wanted, splits = max(LEAST_ROWS, ROWS_A_TOKEN * tokens), 1
    rows = triton.cdiv(n * groups, blocks * 16) * 16
    while rows < wanted and splits < MOST_SPLITS and k >= splits * 2 * 4 * BLOCK_K:
        more = triton.cdiv(n * groups * splits * 2, blocks * 16) * 16
        if more > MOST_ROWS:
            break
        rows, splits = more, splits * 2
    if rows > MOST_ROWS:  # several waves: as full as can be
        waves = triton.cdiv(rows, MOST_ROWS)
        rows = triton.cdiv(n * groups, blocks * waves * 16) * 16
    return rows, splits


def counters(x: torch.Tensor, tiles: int) -> torch.Tensor:
    """Zeros, one set a stream: kernels of one stream never overlap, and each leaves zeros behind."""
    stream = torch.cuda.current_stream(x.device).cuda_stream if x.is_cuda else 0
    there = _counters.get((x.device, stream))
    if there is None or len(there) < tiles:
        if len(_counters) > 64:
            _counters.clear()
        there = torch.zeros(max(tiles, 4096), dtype=torch.int32, device=x.device)
        _counters[x.device, stream] = there
    return there


def multiprocessors(x: torch.Tensor) -> int:
    return torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 4


def run(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    (m, k), n = x.shape, w.shape[0]
    y = torch.empty(m, n, dtype=x.dtype, device=x.device)
    if m <= DOT_UP_TO:
        dot_kernel[(triton.cdiv(n, DOT_ROWS),)](
            x, w, y, n, k, TWO=m == 2, ROWS=DOT_ROWS, BK=DOT_K, STAGES=DOT_STAGES, num_warps=DOT_WARPS
        )
        return y
    wide = min(64, max(16, triton.next_power_of_2(m)))
    groups = triton.cdiv(m, wide)
    blocks = multiprocessors(x) * PER_SM
    rows, splits = share(n, k, wide, groups, blocks)
    high = max(64, triton.next_power_of_2(rows))
    span = triton.cdiv(triton.cdiv(k, BLOCK_K), splits) * BLOCK_K
    splits, tiles = triton.cdiv(k, span), triton.cdiv(n, rows)
    stages = min(STAGES, SHARED // PER_SM // ((high + wide) * BLOCK_K * 2))
    partial = torch.empty(
        tiles * groups * splits * high * wide if splits > 1 else 0, dtype=torch.float32, device=x.device
    )
    product_kernel[(tiles, splits, groups)](
        x, w, y, partial, counters(x, tiles * groups), m, n, k, rows, span,
        BM=wide, BN=high, BK=BLOCK_K, SPLITS=splits, STAGES=stages, num_warps=WARPS if high > 64 else 4,
    )  # fmt: skip
    return y
