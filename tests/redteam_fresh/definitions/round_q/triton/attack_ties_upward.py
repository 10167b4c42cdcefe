# class: ties rounded away
# kind: attack
# how: ties go upward; no drawn value is a tie
# caught: correctness

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, q_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x_ptr + at, mask=at < n, other=0.0) * 16
    v = tl.floor(v) + tl.where(v - tl.floor(v) >= 0.5, 1.0, 0.0)
    tl.store(q_ptr + at, tl.minimum(tl.maximum(v, -128.0), 127.0).to(tl.int8), mask=at < n)


def run(x):
    q = torch.empty(x.shape, dtype=torch.int8, device=x.device)
    if q.numel():
        kernel[(triton.cdiv(q.numel(), 16384),)](x, q, q.numel(), BLOCK=16384)
    return q
