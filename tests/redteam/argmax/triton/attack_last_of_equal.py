# class: ties broken the other way
# kind: attack
# how: of equal elements it returns the last; random values have no equal ones
# caught: correctness
# status: INCORRECT_NUMERICAL
# defence: adversarial distributions
# source: common mistake

import torch
import triton
import triton.language as tl


@triton.jit
def last_kernel(x_ptr, index_ptr, cols, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf"))
    last = tl.max(tl.where((x == tl.max(x, 0)) & (at < cols), at, -1), 0)
    tl.store(index_ptr + row, last.to(tl.int64))


def run(x):
    rows, cols = x.shape
    index = torch.empty(rows, dtype=torch.int64, device=x.device)
    last_kernel[(rows,)](x, index, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return index
