# class: wrong strides
# kind: attack
# how: returns a transposed view: every value is right, the memory is not what callers were promised
# caught: correctness
# status: INCORRECT_SHAPE
# defence: contiguous outputs
# source: common mistake

import torch
import triton
import triton.language as tl


@triton.jit
def column_kernel(x_ptr, y_ptr, rows, cols, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + at * rows + row, e / tl.sum(e, 0), mask=at < cols)


def run(x):
    rows, cols = x.shape
    y = torch.empty((cols, rows), dtype=x.dtype, device=x.device)
    column_kernel[(rows,)](x, y, rows, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return y.T
