# class: less precision than asked for
# kind: attack
# how: computes in float16 and widens the result
# caught: correctness
# status: INCORRECT_NUMERICAL
# defence: relative bound from error analysis
# source: kernelbench.com w4a16, precision downgrades

import torch
import triton
import triton.language as tl


@triton.jit
def half_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0)).to(tl.float16)
    total = tl.sum(e.to(tl.float32), 0)
    tl.store(y_ptr + row * cols + at, (e.to(tl.float32) / total).to(tl.float16).to(tl.float32), mask=at < cols)


def run(x):
    rows, cols = x.shape
    y = torch.empty_like(x)
    half_kernel[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return y
