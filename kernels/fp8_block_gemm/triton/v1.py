"""Tiles by TMA, products of 128 of k on tensor cores, promoted with their scales by the CUDA cores.

Hypothesis: a step multiplies 128 of k into a fresh accumulator, and one fused multiply-add an element adds it,
times the scale of its row and block, to the float32 sum. Large tiles load few bytes from L2, but sum and product
of 128x192 need 192 registers a thread of two warpgroups. So b comes in parts of 64 rows: 96 registers of sums,
32 of a part's product, and the product of the next part is under way while one is promoted. The tile is chosen
by full waves: smaller ones run two blocks on a multiprocessor, which hide each other's copies, barriers and last
promotion.
Predicted, with floors in brackets: 14 us (3.7), 14 (9.5), 45 (27.8), 14 (7.3) for the shapes of 64 and 128
tokens, whose tiles are too few; 115 (79), 290 (196) and 780 (609) for 4096, 0.8 to 0.9 of DeepGEMM, whose warps
have roles.
Metric: tensor_pct to 60 % at 4096x7168x16384.
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
RESULT = torch.bfloat16
"""Type of y. Interpreters of Triton truncate to bfloat16, so tests take float32."""


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


def multiprocessors(a: torch.Tensor) -> int:
    return torch.cuda.get_device_properties(a.device).multi_processor_count if a.is_cuda else 4


def tile_of(m: int, n: int, blocks: int) -> tuple[int, int]:
    """The tile whose waves end first: a wave takes products and, half as long, the bytes that they need."""

    def time(tile: tuple[int, int]) -> int:
        rows, columns = tile
        waves = triton.cdiv(triton.cdiv(m, rows) * triton.cdiv(n, columns), blocks)
        return waves * (rows * columns + 64 * (rows + columns))

    return min((tile for tile in TILES if tile[0] == 64 or m > 64), key=time)


def run(a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor) -> torch.Tensor:
    (m, k), n = a.shape, b.shape[0]
    y = torch.empty(m, n, dtype=RESULT, device=a.device)
    high, wide = tile_of(m, n, multiprocessors(a))
    tiles_m, tiles_n = triton.cdiv(m, high), triton.cdiv(n, wide)
    room = SHARED if wide > 128 else SHARED // 2
    tile_kernel[(tiles_m * tiles_n,)](
        TensorDescriptor.from_tensor(a, [high, BLOCK]), TensorDescriptor.from_tensor(b, [PART, BLOCK]),
        a_scales, b_scales, y, m, n, k // BLOCK, a_scales.shape[1], tiles_m, tiles_n,
        BM=high, BN=PART, PARTS=wide // PART, BLOCK=BLOCK, GROUP=GROUP,
        STAGES=min(STAGES, room // ((high + wide) * BLOCK)), num_warps=8 if high == 128 else 4,
    )  # fmt: skip
    return y
