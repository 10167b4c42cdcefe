# class: early start
# kind: attack
# how: its kernel may start before the one ahead of it in the stream has ended, and never waits for that
# caught: correctness
# status: INCORRECT_NUMERICAL
# needs: early start
# defence: inputs that arrive late
# source: NVIDIA/cccl issue 9134: early start without the wait

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * cols + at, e / tl.sum(e, 0), mask=at < cols)


def run(x):
    rows, cols = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8, launch_pdl=True)
    return y
