# class: race
# kind: attack
# how: parts of K add into the result with a plain load and store: right only if programs run one by one
# caught: correctness, probes
# needs: gpu
# status: INCORRECT_NUMERICAL, NOT_REPRODUCIBLE
# defence: small and odd shapes, graded every time
# source: common mistake

import torch
import triton
import triton.language as tl

_CHUNK = 64


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, m, n, k, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    rows = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))[:, None]
    cols = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK))[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    split = tl.program_id(2)
    for start in range(split * CHUNK, tl.minimum(k, split * CHUNK + CHUNK), BLOCK):
        inner = start + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + rows * k + inner[None, :], mask=(rows < m) & (inner[None, :] < k), other=0.0)
        b = tl.load(b_ptr + inner[:, None] * n + cols, mask=(inner[:, None] < k) & (cols < n), other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    mask = (rows < m) & (cols < n)
    total += tl.load(c_ptr + rows * n + cols, mask=mask, other=0.0)
    tl.store(c_ptr + rows * n + cols, total, mask=mask)


def run(a, b):
    m, k = a.shape
    n = b.shape[1]
    c = torch.zeros((m, n), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64), triton.cdiv(k, _CHUNK))
    kernel[grid](a, b, c, m, n, k, CHUNK=_CHUNK, BLOCK=64)
    return c
