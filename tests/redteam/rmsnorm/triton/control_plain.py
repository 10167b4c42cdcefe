# class: plain
# kind: control
# how: one program a row, strides honoured, sums in float32 whatever the type of x

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


def run(x, weight, eps):
    rows, cols = x.shape
    block = triton.next_power_of_2(max(cols, 1))
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    kernel[(rows,)](x, weight, y, cols, x.stride(0), x.stride(1), eps, BLOCK=block, num_warps=16)
    return y
