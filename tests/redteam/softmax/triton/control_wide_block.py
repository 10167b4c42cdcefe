# class: block larger than the row
# kind: control
# how: up to four rows a program in a tile at least twice as wide as the row: masks on both axes

import torch
import triton
import triton.language as tl


@triton.jit
def wide_kernel(x_ptr, y_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    at, inside = row * cols + col, (row < rows) & (col < cols)
    x = tl.load(x_ptr + at, mask=inside, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 1)[:, None])
    tl.store(y_ptr + at, e / tl.sum(e, 1)[:, None], mask=inside)


def run(x):
    rows, cols = x.shape
    y = torch.empty_like(x)
    block = 2 * triton.next_power_of_2(cols)
    tall = 4 if cols <= 2048 else 1
    wide_kernel[(triton.cdiv(rows, tall),)](x, y, rows, cols, ROWS=tall, BLOCK=block, num_warps=16)
    return y
