# class: plain
# kind: control
# how: reuses two workspaces for the maxima in turn, and returns memory of its own at each call
# source: common practice

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, peaks_ptr, cols, BLOCK: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf"))
    tl.store(peaks_ptr + row, tl.max(x, 0))
    tl.debug_barrier()
    e = tl.exp(x - tl.load(peaks_ptr + row))
    tl.store(y_ptr + row * cols + at, e / tl.sum(e, 0), mask=at < cols)


_workspaces = {}


def run(x):
    rows, cols = x.shape
    pair = _workspaces.setdefault((rows, x.device), [x.new_empty(rows) for _ in range(2)])
    pair.reverse()
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](x, y, pair[0], cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return y
