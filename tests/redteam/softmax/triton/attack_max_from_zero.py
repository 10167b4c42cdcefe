# class: wrong start of a running maximum
# kind: attack
# how: masked lanes load 0, so the maximum is never below it: rows far below zero give 0 / 0
# caught: correctness
# status: INCORRECT_NUMERICAL
# defence: adversarial distributions
# source: common mistake

import torch
import triton
import triton.language as tl


@triton.jit
def zero_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    e = tl.where(at < cols, tl.exp(x - tl.maximum(tl.max(x, 0), 0.0)), 0.0)
    tl.store(y_ptr + row * cols + at, e / tl.sum(e, 0), mask=at < cols)


def run(x):
    rows, cols = x.shape
    y = torch.empty_like(x)
    zero_kernel[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return y
