# class: another order
# kind: control
# how: chunks from the last to the first, each lane its own running best, ties settled at the end

import torch
import triton
import triton.language as tl


@triton.jit
def reversed_kernel(x_ptr, index_ptr, cols, blocks, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    best = tl.full([BLOCK], -float("inf"), tl.float32)
    place = tl.full([BLOCK], 0x7FFFFFFF, tl.int32)
    for block in range(blocks):
        at = (blocks - 1 - block) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf"))
        better = (x >= best) & (at < cols)
        best = tl.where(better, x, best)
        place = tl.where(better, at, place)
    first = tl.min(tl.where(best == tl.max(best, 0), place, 0x7FFFFFFF), 0)
    tl.store(index_ptr + row, first.to(tl.int64))


def run(x):
    rows, cols = x.shape
    index = torch.empty(rows, dtype=torch.int64, device=x.device)
    reversed_kernel[(rows,)](x, index, cols, triton.cdiv(cols, 8192), BLOCK=8192, num_warps=8)
    return index
