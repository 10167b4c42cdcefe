# class: another order
# kind: control
# how: three passes, the last block first, lane by lane sums and a multiplication by the reciprocal

import torch
import triton
import triton.language as tl


@triton.jit
def backwards_kernel(x_ptr, y_ptr, cols, blocks, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * cols
    y_ptr += row * cols
    tops = tl.full([BLOCK], -float("inf"), tl.float32)
    for block in range(blocks):
        at = (blocks - 1 - block) * BLOCK + tl.arange(0, BLOCK)
        tops = tl.maximum(tops, tl.load(x_ptr + at, mask=at < cols, other=-float("inf")))
    largest = tl.max(tops, 0)
    sums = tl.zeros([BLOCK], tl.float32)
    for block in range(blocks):
        at = (blocks - 1 - block) * BLOCK + tl.arange(0, BLOCK)
        sums += tl.exp(tl.load(x_ptr + at, mask=at < cols, other=-float("inf")) - largest)
    inverse = 1.0 / tl.sum(sums, 0)
    for block in range(blocks):
        at = (blocks - 1 - block) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y_ptr + at, tl.exp(tl.load(x_ptr + at, mask=at < cols) - largest) * inverse, mask=at < cols)


def run(x):
    rows, cols = x.shape
    y = torch.empty_like(x)
    backwards_kernel[(rows,)](x, y, cols, triton.cdiv(cols, 4096), BLOCK=4096, num_warps=8)
    return y
