# class: packed keys
# kind: control
# how: value and place in one 64-bit key whose maximum is the answer

import torch
import triton
import triton.language as tl


@triton.jit
def packed_kernel(x_ptr, index_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    best = tl.full([BLOCK], -0x7FFFFFFFFFFFFFFF, tl.int64)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0) + 0.0  # -0 equals 0
        bits = x.to(tl.int32, bitcast=True)
        bits = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)  # ordered as the values are
        key = (bits.to(tl.int64) << 32) | (0x7FFFFFFF - at).to(tl.int64)  # the first of equal ones is largest
        best = tl.where(at < cols, tl.maximum(best, key), best)
    tl.store(index_ptr + row, 0x7FFFFFFF - (tl.max(best, 0) & 0x7FFFFFFF))


def run(x):
    rows, cols = x.shape
    index = torch.empty(rows, dtype=torch.int64, device=x.device)
    packed_kernel[(rows,)](x, index, cols, BLOCK=8192, num_warps=8)
    return index
