# class: starts early and waits
# kind: control
# how: two kernels, each launched before the one ahead of it has ended; both wait before they read or write

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


@triton.jit
def maxima_kernel(x_ptr, most_ptr, cols, BLOCK: tl.constexpr, EARLY: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()  # until what is ahead has ended and its results are seen
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf"))
    tl.store(most_ptr + row, tl.max(x, 0))


@triton.jit
def softmax_kernel(x_ptr, most_ptr, y_ptr, cols, BLOCK: tl.constexpr, EARLY: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    if EARLY:
        gdc_wait()
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf"))
    e = tl.exp(x - tl.load(most_ptr + row))
    tl.store(y_ptr + row * cols + at, e / tl.sum(e, 0), mask=at < cols)


def run(x):
    rows, cols = x.shape
    most, y = torch.empty(rows, dtype=x.dtype, device=x.device), torch.empty_like(x)
    early = x.is_cuda and torch.cuda.get_device_capability(x.device) >= (9, 0)  # not interpreted
    how = {"EARLY": True, "launch_pdl": True} if early else {"EARLY": False}
    block = triton.next_power_of_2(cols)
    maxima_kernel[(rows,)](x, most, cols, BLOCK=block, num_warps=8, **how)
    softmax_kernel[(rows,)](x, most, y, cols, BLOCK=block, num_warps=8, **how)
    return y
