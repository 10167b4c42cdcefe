"""Few tokens: the weights' rows as M of the tensor cores, and steps of k dealt evenly to all blocks (stream-k).

Hypothesis: up to 128 tokens the product is bound by reading the weights once, and 2112 or 4096 rows make too few
tiles for 132 multiprocessors. Operands are swapped: 64 rows of b are M, all tokens are N, so no row of a product
is wasted at 16 tokens and no weight is read twice at 128. Steps of all tiles lie end to end; each of two blocks
on a multiprocessor takes an equal stretch, whose copies fill 96 KB by TMA. The last block of a tile adds its
parts in their order, so results repeat. More tokens take the tiles of draft 1.
Predicted, with floors in brackets: 6.5 us (3.7), 11.5 (9.5), 31 (27.8), 10 (7.3) for the shapes of 64 and 128
tokens, 1.2 to 1.5 of DeepGEMM; 4096 as draft 1.
Metric: dram_pct to 85 % at 64x7168x16384.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BLOCK = 128
"""Columns of k that share a scale: those of a step."""
PART = 64
"""Rows of b in one product: they lie in one block of scales, and divide the rows of each tile."""
TILES = ((128, 192), (128, 128), (64, 128), (64, 64))
"""Rows of a and of b in a tile, the best first where waves are as full."""
GROUP = 8
"""Tiles of a that go through b together, so that both stay in L2."""
SHARED = 200 * 1024
STAGES = 6
"""Stages of copies at most, as many as a block's part of shared memory has room for."""
FEW = 128
"""Most tokens whose steps are dealt out."""
ROWS = 64
"""Rows of b in a tile of few tokens."""
PER_SM = 2
"""Blocks that share a multiprocessor."""
LEAST_STEPS = 4
"""Steps that are worth a block of their own."""
RESULT = torch.bfloat16
"""Type of y. Interpreters of Triton truncate to bfloat16, so tests take float32."""

_counters: dict[tuple[torch.device, int], torch.Tensor] = {}


@triton.jit
def tile_kernel(
    a_desc, b_desc, a_scales_ptr, b_scales_ptr, y_ptr, m, n, groups, padded, tiles_m, tiles_n,
    BM: tl.constexpr, BN: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr, GROUP: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """A tile of BM rows of a by PARTS times BN rows of b."""
    tile = tl.program_id(0)
    band = tile // (GROUP * tiles_n) * GROUP
    width = tl.minimum(tiles_m - band, GROUP)
    inside = tile % (GROUP * tiles_n)
    first_m = (band + inside % width) * BM
    first_n = inside // width * (BN * PARTS)

    row = first_m + tl.arange(0, BM)
    of_a = a_scales_ptr + tl.minimum(row, m - 1)
    last = (n - 1) // BLOCK
    sums = ()
    for _ in tl.static_range(PARTS):
        sums = sums + (tl.zeros((BM, BN), tl.float32),)
    for group in tl.range(0, groups, num_stages=STAGES):
        k = group * BLOCK
        scale = tl.load(of_a + group * padded)
        a = a_desc.load([first_m, k])
        larger = ()
        for part in tl.static_range(PARTS):
            b = b_desc.load([first_n + part * BN, k])
            block = tl.minimum((first_n + part * BN) // BLOCK, last)
            factor = scale * tl.load(b_scales_ptr + block * groups + group)
            larger = larger + (sums[part] + tl.dot(a, b.T) * factor[:, None],)
        sums = larger

    for part in tl.static_range(PARTS):
        column = first_n + part * BN + tl.arange(0, BN)
        to = y_ptr + row.to(tl.int64)[:, None] * n + column[None, :]
        tl.store(to, sums[part].to(y_ptr.dtype.element_ty), mask=(row < m)[:, None] & (column < n)[None, :])


@triton.jit
def owner(step, steps, blocks):
    """The block whose stretch has this step."""
    return ((step + 1) * blocks - 1) // steps


@triton.jit
def few_kernel(
    a_desc, b_desc, a_scales_desc, b_scales_ptr, y_ptr, partial_ptr, counter_ptr, m, n, groups, steps,
    TOKENS: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Steps `pid * steps / blocks` and on; a tile is ROWS rows of b by all tokens. A block's first segment, if it
    does not begin its tile, leaves its sums in slot 2 pid, and its last, if it does not end it, in 2 pid + 1."""
    pid, blocks = tl.program_id(0).to(tl.int64), tl.num_programs(0).to(tl.int64)
    SIZE: tl.constexpr = ROWS * TOKENS
    column, token = tl.arange(0, ROWS), tl.arange(0, TOKENS)
    place = column[:, None] * TOKENS + token[None, :]
    step, end = pid * steps // blocks, (pid + 1) * steps // blocks
    while step < end:
        tile = step // groups
        ahead = tl.minimum(end, (tile + 1) * groups)
        first = (tile * ROWS).to(tl.int32)
        of_b = b_scales_ptr + first // BLOCK * groups.to(tl.int64)
        sums = ()
        for _ in tl.static_range(PARTS):
            sums = sums + (tl.zeros((ROWS, TOKENS), tl.float32),)
        start, stop = (step - tile * groups).to(tl.int32), (ahead - tile * groups).to(tl.int32)
        for group in tl.range(start, stop, num_stages=STAGES):
            b = b_desc.load([first, group * BLOCK])
            of_block = tl.load(of_b + group)
            larger = ()
            for part in tl.static_range(PARTS):
                a = a_desc.load([part * TOKENS, group * BLOCK])
                factor = a_scales_desc.load([group, part * TOKENS]) * of_block
                larger = larger + (sums[part] + tl.dot(b, a.T) * factor,)
            sums = larger

        one, last = owner(tile * groups, steps, blocks), owner((tile + 1) * groups - 1, steps, blocks)
        y_at = y_ptr + first + column[:, None] + token[None, :].to(tl.int64) * n
        inside = (first + column < n)[:, None]
        if one == last:
            for part in tl.static_range(PARTS):
                mask = inside & (part * TOKENS + token < m)[None, :]
                tl.store(y_at + part * TOKENS * n.to(tl.int64), sums[part].to(y_ptr.dtype.element_ty), mask=mask)
        else:
            slot = 2 * pid + (one == pid).to(tl.int64)
            for part in tl.static_range(PARTS):
                tl.store(partial_ptr + (slot * PARTS + part) * SIZE + place, sums[part])
            tl.debug_barrier()
            if tl.atomic_add(counter_ptr + tile, 1, sem="acq_rel") == last - one:
                tl.store(counter_ptr + tile, 0)  # for the next launch
                for part in tl.static_range(PARTS):
                    at = partial_ptr + part * SIZE + place
                    total = tl.load(at + (2 * one + 1) * PARTS * SIZE, cache_modifier=".cg")
                    for other in tl.range(one + 1, last + 1, num_stages=1):
                        total += tl.load(at + 2 * other * PARTS * SIZE, cache_modifier=".cg")
                    mask = inside & (part * TOKENS + token < m)[None, :]
                    tl.store(y_at + part * TOKENS * n.to(tl.int64), total.to(y_ptr.dtype.element_ty), mask=mask)
        step = ahead


def counters(a: torch.Tensor, tiles: int) -> torch.Tensor:
    """Zeros, one set a stream: kernels of one stream never overlap, and each leaves zeros behind."""
    stream = torch.cuda.current_stream(a.device).cuda_stream if a.is_cuda else 0
    there = _counters.get((a.device, stream))
    if there is None or len(there) < tiles:
        if len(_counters) > 64:
            _counters.clear()
        there = torch.zeros(max(tiles, 4096), dtype=torch.int32, device=a.device)
        _counters[a.device, stream] = there
    return there


def multiprocessors(a: torch.Tensor) -> int:
    return torch.cuda.get_device_properties(a.device).multi_processor_count if a.is_cuda else 4


def tile_of(m: int, n: int, blocks: int) -> tuple[int, int]:
    """The tile whose waves end first: a wave takes products and, half as long, the bytes that they need."""

    def time(tile: tuple[int, int]) -> int:
        rows, columns = tile
        waves = triton.cdiv(triton.cdiv(m, rows) * triton.cdiv(n, columns), blocks)
        return waves * (rows * columns + 64 * (rows + columns))

    return min((tile for tile in TILES if tile[0] == 64 or m > 64), key=time)


def tiled(
    a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor, y: torch.Tensor
) -> None:
    (m, k), n = a.shape, b.shape[0]
    high, wide = tile_of(m, n, multiprocessors(a))
    tiles_m, tiles_n = triton.cdiv(m, high), triton.cdiv(n, wide)
    room = SHARED if wide > 128 else SHARED // 2
    tile_kernel[(tiles_m * tiles_n,)](
        TensorDescriptor.from_tensor(a, [high, BLOCK]), TensorDescriptor.from_tensor(b, [PART, BLOCK]),
        a_scales, b_scales, y, m, n, k // BLOCK, a_scales.shape[1], tiles_m, tiles_n,
        BM=high, BN=PART, PARTS=wide // PART, BLOCK=BLOCK, GROUP=GROUP,
        STAGES=min(STAGES, room // ((high + wide) * BLOCK)), num_warps=8 if high == 128 else 4,
    )  # fmt: skip


def few_tokens(
    a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor, y: torch.Tensor
) -> None:
    (m, k), n = a.shape, b.shape[0]
    tokens = max(16, min(PART, triton.next_power_of_2(m)))
    parts, groups, tiles = triton.cdiv(m, tokens), k // BLOCK, triton.cdiv(n, ROWS)
    steps = tiles * groups
    blocks = min(multiprocessors(a) * PER_SM, max(tiles, triton.cdiv(steps, LEAST_STEPS)))
    partial = torch.empty(2 * blocks * ROWS * parts * tokens, dtype=torch.float32, device=a.device)
    few_kernel[(blocks,)](
        TensorDescriptor.from_tensor(a, [tokens, BLOCK]), TensorDescriptor.from_tensor(b, [ROWS, BLOCK]),
        TensorDescriptor.from_tensor(a_scales, [1, tokens]), b_scales, y, partial, counters(a, tiles),
        m, n, groups, steps,
        TOKENS=tokens, PARTS=parts, ROWS=ROWS, BLOCK=BLOCK,
        STAGES=min(2 * STAGES, SHARED // PER_SM // ((ROWS + parts * tokens) * BLOCK)), num_warps=4,
    )  # fmt: skip


def run(a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor) -> torch.Tensor:
    y = torch.empty(len(a), len(b), dtype=RESULT, device=a.device)
    (few_tokens if len(a) <= FEW else tiled)(a, a_scales, b, b_scales, y)
    return y
