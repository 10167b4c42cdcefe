"""Each block of 128 rows finds its expert on the device; tiles by TMA, promoted part by part, as in `fp8_block_gemm`.

Hypothesis: rows come in blocks of one expert, so the grid follows from sizes that the host knows, and a block's expert
is the number of experts that end before it: one load of all offsets, 1 KB that L2 keeps, and one sum. No list of tiles is
made, and nobody waits for the device. Neighbours in the grid are row blocks of one expert at the same rows of b: each
weight comes from memory once, also where Zipf's law gives an expert fifty blocks. A step multiplies 128 of k into
a fresh accumulator, in parts of 64 rows of b, and promotes one part while the next is multiplied.
Predicted, with floors in brackets: 115 us (83), 250 (202), 350 (283), 490 (381), 480 (387), 1500 (1218) and 760 (609) in
the order of the workloads, and 16 (11) at 20 of 32 experts: 0.8 to 0.9 of DeepGEMM with many tokens, about as fast
with few, where both wait for weights.
Metric: tensor_pct to 60 % at 640 blocks; dram_pct to 75 % at 75.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BLOCK = 128
"""Columns of k that share a scale, those of a step; and rows of a that belong to one expert."""
PART = 64
"""Rows of b in one product: they lie in one block of scales, and divide the rows of each tile."""
WIDTHS = (192, 128)
"""Rows of b in a tile, the best first where waves are as full."""
WIDTH = 0
"""One of them for all sizes; 0: by waves."""
GROUP = 16
"""Row blocks that go through b together."""
SHARED = 200 * 1024
STAGES = 6
"""Stages of copies at most, as many as a block's part of shared memory has room for."""
RESULT = torch.bfloat16
"""Type of y. Interpreters of Triton truncate to bfloat16, so tests take float32."""


@triton.jit
def experts_kernel(
    a_desc, b_desc, a_scales_ptr, b_scales_ptr, offsets_ptr, y_ptr, n, groups, rows, blocks, tiles_n, experts,
    EXPERTS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,
    GROUP: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """A block of BM rows of a by PARTS times BN rows of its expert's b."""
    tile = tl.program_id(0)
    band = tile // (GROUP * tiles_n) * GROUP
    width = tl.minimum(blocks - band, GROUP)
    inside = tile % (GROUP * tiles_n)
    first_m = (band + inside % width) * BM
    first_n = inside // width * (BN * PARTS)
    one = tl.arange(0, EXPERTS)
    ends = tl.load(offsets_ptr + 1 + one, mask=one < experts, other=2147483647)
    expert = tl.sum((ends <= first_m).to(tl.int32), 0)

    of_a = a_scales_ptr + first_m + tl.arange(0, BM)
    last = (n - 1) // BLOCK
    of_b = b_scales_ptr + expert.to(tl.int64) * (last + 1) * groups
    row_b = expert * n + first_n
    sums = ()
    for _ in tl.static_range(PARTS):
        sums = sums + (tl.zeros((BM, BN), tl.float32),)
    for group in tl.range(0, groups, num_stages=STAGES):
        k = group * BLOCK
        scale = tl.load(of_a + group * rows)
        a = a_desc.load([first_m, k])
        larger = ()
        for part in tl.static_range(PARTS):
            b = b_desc.load([row_b + part * BN, k])
            block = tl.minimum((first_n + part * BN) // BLOCK, last)
            factor = scale * tl.load(of_b + block * groups + group)
            larger = larger + (sums[part] + tl.dot(a, b.T) * factor[:, None],)
        sums = larger

    row = (first_m + tl.arange(0, BM)).to(tl.int64)
    for part in tl.static_range(PARTS):
        column = first_n + part * BN + tl.arange(0, BN)
        to = y_ptr + row[:, None] * n + column[None, :]
        tl.store(to, sums[part].to(y_ptr.dtype.element_ty), mask=(column < n)[None, :])


def multiprocessors(a: torch.Tensor) -> int:
    return torch.cuda.get_device_properties(a.device).multi_processor_count if a.is_cuda else 4


def width_of(blocks: int, n: int, many: int) -> int:
    """Rows of b in a tile whose waves end first: a wave takes products and, half as long, the bytes that they need."""

    def time(wide: int) -> int:
        return triton.cdiv(blocks * triton.cdiv(n, wide), many) * (BLOCK * wide + 64 * (BLOCK + wide))

    return WIDTH or min(WIDTHS, key=time)


def run(
    a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor, offsets: torch.Tensor
) -> torch.Tensor:
    (rows, k), (experts, n, _) = a.shape, b.shape
    y = torch.empty(rows, n, dtype=RESULT, device=a.device)
    blocks = rows // BLOCK
    wide = width_of(blocks, n, multiprocessors(a))
    tiles_n = triton.cdiv(n, wide)
    room = SHARED if wide > BLOCK else SHARED // 2
    experts_kernel[(blocks * tiles_n,)](
        TensorDescriptor.from_tensor(a, [BLOCK, BLOCK]),
        TensorDescriptor.from_tensor(b.view(experts * n, k), [PART, BLOCK]),
        a_scales, b_scales, offsets, y, n, k // BLOCK, rows, blocks, tiles_n, experts,
        EXPERTS=triton.next_power_of_2(experts), BM=BLOCK, BN=PART, PARTS=wide // PART, BLOCK=BLOCK, GROUP=GROUP,
        STAGES=min(STAGES, room // ((BLOCK + wide) * BLOCK)), num_warps=8,
    )  # fmt: skip
    return y
