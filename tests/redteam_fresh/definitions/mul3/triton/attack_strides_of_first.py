# class: strides of another tensor
# kind: attack
# how: takes the second input to lie as the first one does
# caught: correctness

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, y_ptr, n, n1, n2, s0, s1, s2, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    k, j, i = at % n2, at // n2 % n1, at // n2 // n1
    place = i * s0 + j * s1 + k * s2
    tl.store(y_ptr + at, tl.load(a_ptr + place, mask=mask) * tl.load(b_ptr + place, mask=mask), mask=mask)


def run(a, b):
    y = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    n = y.numel()
    if n:
        kernel[(triton.cdiv(n, 16384),)](a, b, y, n, a.shape[1], a.shape[2], *a.stride(), BLOCK=16384)
    return y
