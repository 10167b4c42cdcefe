# class: other tile shape
# kind: control
# how: four rows a program; a workspace of scales, made anew each call, between two kernels

import torch
import triton
import triton.language as tl


@triton.jit
def scales(x_ptr, s_ptr, rows, cols, x_row, x_col, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0) * 4 + tl.arange(0, 4)
    total = tl.zeros((4,), tl.float32)
    for start in range(0, cols, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = (row[:, None] < rows) & (offsets[None, :] < cols)
        places = x_ptr + row[:, None].to(tl.int64) * x_row + offsets[None, :] * x_col
        x = tl.load(places, mask=mask, other=0.0).to(tl.float32)
        total += tl.sum(x * x, 1)
    tl.store(s_ptr + row, tl.rsqrt(total / cols + eps), mask=row < rows)


@triton.jit
def scaled(x_ptr, w_ptr, s_ptr, y_ptr, rows, cols, x_row, x_col, BLOCK: tl.constexpr):
    row = tl.program_id(0) * 4 + tl.arange(0, 4)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (row[:, None] < rows) & (offsets[None, :] < cols)
    wide = row[:, None].to(tl.int64)
    x = tl.load(x_ptr + wide * x_row + offsets[None, :] * x_col, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + offsets, mask=offsets < cols, other=0.0).to(tl.float32)
    s = tl.load(s_ptr + row, mask=row < rows, other=0.0)
    y = (x * s[:, None]) * w[None, :]
    tl.store(y_ptr + wide * cols + offsets[None, :], y.to(y_ptr.dtype.element_ty), mask=mask)


def run(x, weight, eps):
    rows, cols = x.shape
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    workspace = torch.empty((rows,), dtype=torch.float32, device=x.device)
    programs = triton.cdiv(rows, 4)
    scales[(programs,)](x, workspace, rows, cols, x.stride(0), x.stride(1), eps, BLOCK=4096, num_warps=8)
    scaled[(programs, triton.cdiv(cols, 4096))](
        x, weight, workspace, y, rows, cols, x.stride(0), x.stride(1), BLOCK=4096, num_warps=8
    )
    return y
