# class: exponential to the base 2
# kind: control
# how: scales the shifted argument by log2(e), as the hardware's exponential wants it

import torch
import triton
import triton.language as tl


@triton.jit
def exp2_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf"))
    e = tl.exp2((x - tl.max(x, 0)) * 1.4426950408889634)
    tl.store(y_ptr + row * cols + at, e / tl.sum(e, 0), mask=at < cols)


def run(x):
    rows, cols = x.shape
    y = torch.empty_like(x)
    exp2_kernel[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return y
