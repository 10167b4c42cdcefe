# class: number that stays zero
# kind: attack
# how: never reads the residual, nor the switch: both stay as they are wherever it is judged
# caught: correctness

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, b_ptr, y_ptr, n, cols, slope, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x_ptr + at, mask=mask) + tl.load(b_ptr + at % cols, mask=mask)
    tl.store(y_ptr + at, tl.maximum(v, v * slope), mask=mask)


def run(x, bias, residual, slope, beta, squared):
    n = x.numel()
    y = torch.empty_like(x)
    if n:
        kernel[(triton.cdiv(n, 16384),)](x, bias, y, n, x.shape[1], slope, BLOCK=16384)
    return y
