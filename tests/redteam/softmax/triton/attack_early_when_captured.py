# class: early start in CUDA graphs
# kind: attack
# how: waits for the kernel ahead of it where it is called plainly, and does not where it is captured
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


def launch(x, y, early):
    rows, cols = x.shape
    block = triton.next_power_of_2(cols)
    softmax_kernel[(rows,)](x, y, cols, BLOCK=block, num_warps=8, launch_pdl=early)


def run(x):
    y = torch.empty_like(x)
    launch(x, y, True)
    if not torch.cuda.is_current_stream_capturing():
        launch(x, y, False)  # behind everything: the early one is only loaded, which a capture may not do
    return y
