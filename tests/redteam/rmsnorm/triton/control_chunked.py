# class: other summation order
# kind: control
# how: a row in chunks, partial sums kept a lane each and added at the end; two passes

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, y_ptr, cols, x_row, x_col, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_row
    y_ptr += row * cols
    lanes = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets * x_col, mask=offsets < cols, other=0.0).to(tl.float32)
        lanes += x * x
    scale = 1 / tl.sqrt(tl.sum(lanes, 0) / cols + eps)
    for start in range(0, cols, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < cols
        x = tl.load(x_ptr + offsets * x_col, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + offsets, (x * scale * w).to(y_ptr.dtype.element_ty), mask=mask)


def run(x, weight, eps):
    rows, cols = x.shape
    block = 256 if cols < 1024 else 8192
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    kernel[(rows,)](x, weight, y, cols, x.stride(0), x.stride(1), eps, BLOCK=block, num_warps=16)
    return y
