# class: write past the end
# kind: attack
# how: stores one element past its own output, into the slack of the allocator
# caught: correctness, sanitizers
# needs: gpu, sanitizer
# status: SANITIZER, OUT_OF_BOUNDS, INCORRECT_NUMERICAL, RUNTIME_ERROR
# defence: memcheck without the caching allocator
# source: common mistake

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, y_ptr, cols, x_row, x_col, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < cols
    x = tl.load(x_ptr + row * x_row + offsets * x_col, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    y = x / tl.sqrt(tl.sum(x * x, 0) / cols + eps) * w
    tl.store(y_ptr + row * cols + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)
    if row == tl.num_programs(0) - 1:
        tl.store(y_ptr + tl.num_programs(0).to(tl.int64) * cols, 0.0)


def run(x, weight, eps):
    rows, cols = x.shape
    block = triton.next_power_of_2(cols)
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    kernel[(rows,)](x, weight, y, cols, x.stride(0), x.stride(1), eps, BLOCK=block, num_warps=16)
    return y
