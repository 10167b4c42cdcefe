# class: library calls, put together
# kind: attack
# how: max, comparison, index and min from the library; none of them is the operator's name
# caught: probes
# status: LIBRARY_CALL
# defence: audit of library calls
# source: common mistake

import torch
import triton
import triton.language as tl


@triton.jit
def argmax_kernel(x_ptr, index_ptr, cols, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf"))
    first = tl.min(tl.where(x == tl.max(x, 0), at, BLOCK), 0)
    tl.store(index_ptr + row, first.to(tl.int64))


def argmax(x):
    rows, cols = x.shape
    index = torch.empty(rows, dtype=torch.int64, device=x.device)
    argmax_kernel[(rows,)](x, index, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return index


def run(x):
    cols = x.shape[1]
    places = torch.arange(cols, device=x.device).expand_as(x)
    return torch.where(x == x.amax(-1, keepdim=True), places, cols).amin(-1)
