"""A block carries the sum of its row from tile to tile.

Hypothesis: with thousands of rows every multiprocessor has some, and one read and one write are all the traffic.
Predicted: 36 us at 4096x4096 in float32, where 31 is the floor at 4.3 TB/s. At 64 rows half of the multiprocessors
have none: 2 ms at 64x1048576, where 125 us is the floor.
Metric: dram_pct to 85 % at 4096x4096.
"""

import torch
import triton
import triton.language as tl

TILE = 4096
WARPS = 8


@triton.jit
def rows_kernel(x, y, cols, TILE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_row = x + row * cols
    y_row = y + row * cols
    carry = 0.0
    for start in range(0, cols, TILE):
        at = start + tl.arange(0, TILE)
        inside = at < cols
        terms = tl.load(x_row + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(y_row + at, (carry + tl.cumsum(terms, 0)).to(y.dtype.element_ty), mask=inside)
        carry += tl.sum(terms, 0)


def run(x: torch.Tensor) -> torch.Tensor:
    rows, cols = x.shape
    y = torch.empty_like(x)
    tile = max(16, min(TILE, triton.next_power_of_2(cols)))
    rows_kernel[(rows,)](x, y, cols, TILE=tile, num_warps=max(1, min(WARPS, tile // 128)))
    return y
