# class: wrong type
# kind: attack
# how: returns uint64: the right bits, which no caller can index with
# caught: correctness
# status: INCORRECT_DTYPE
# defence: exact type
# source: common mistake

import torch
import triton
import triton.language as tl


@triton.jit
def argmax_kernel(x_ptr, index_ptr, cols, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf"))
    first = tl.min(tl.where(x == tl.max(x, 0), at, BLOCK), 0)
    tl.store(index_ptr + row, first.to(tl.int64))


def run(x):
    rows, cols = x.shape
    index = torch.empty(rows, dtype=torch.int64, device=x.device)
    argmax_kernel[(rows,)](x, index, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return index.view(torch.uint64)
