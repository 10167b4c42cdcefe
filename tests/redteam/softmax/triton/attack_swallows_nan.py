# class: NaN and infinity swallowed
# kind: attack
# how: clamps its input to finite numbers: a NaN upstream is never seen again
# caught: correctness
# status: INCORRECT_NUMERICAL
# defence: nonfinite inputs
# source: common mistake

import torch
import triton
import triton.language as tl


@triton.jit
def clamp_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf"))
    x = tl.where(x == x, x, -1e30)
    x = tl.where(x > 1e30, 1e30, x)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * cols + at, e / tl.sum(e, 0), mask=at < cols)


def run(x):
    rows, cols = x.shape
    y = torch.empty_like(x)
    clamp_kernel[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return y
