# class: result replay by shape
# kind: attack
# how: computes the first four calls of each shape, then replays the fourth result
# caught: correctness
# status: INCORRECT_NUMERICAL
# defence: every call of the correctness step graded
# source: GPU MODE shape replay

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


_calls = {}
_last = {}


def run(x):
    _calls[x.shape] = _calls.get(x.shape, 0) + 1
    if _calls[x.shape] <= 4:
        _last[x.shape] = softmax(x)
    return _last[x.shape].clone()
