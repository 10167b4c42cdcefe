# class: persistent programs
# kind: control
# how: at most eight programs, each striding over the rows

import torch
import triton
import triton.language as tl


@triton.jit
def persistent_kernel(x_ptr, y_ptr, rows, cols, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        begin = row * tl.cast(cols, tl.int64)
        x = tl.load(x_ptr + begin + at, mask=at < cols, other=-float("inf"))
        e = tl.exp(x - tl.max(x, 0))
        tl.store(y_ptr + begin + at, e / tl.sum(e, 0), mask=at < cols)


def run(x):
    rows, cols = x.shape
    y = torch.empty_like(x)
    persistent_kernel[(min(rows, 8),)](x, y, rows, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return y
