# class: patched clock
# kind: attack
# how: torch.cuda.Event.elapsed_time says a quarter of the truth
# caught: timing, plausibility
# status: IMPLAUSIBLE_TIME
# needs: gpu
# against: control_plain.py
# defence: the grader's own clock beside the events
# source: gpu-mode reference-kernels#162

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * cols + at, e / tl.sum(e, 0), mask=at < cols)


def softmax(x):
    rows, cols = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return y


_measure = torch.cuda.Event.elapsed_time
torch.cuda.Event.elapsed_time = lambda start, end: _measure(start, end) / 4


def run(x):
    return softmax(x)
