# class: split K
# kind: control
# how: parts of K added atomically in no order: two calls differ in the last bits, within the bound

import torch
import triton
import triton.language as tl

_CHUNK = 1024 if torch.cuda.is_available() else 64


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, m, n, k, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    rows = (tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK))[:, None]
    cols = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK))[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    split = tl.program_id(2)
    for start in range(split * CHUNK, tl.minimum(k, split * CHUNK + CHUNK), BLOCK):
        inner = start + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + rows * k + inner[None, :], mask=(rows < m) & (inner[None, :] < k), other=0.0)
        b = tl.load(b_ptr + inner[:, None] * n + cols, mask=(inner[:, None] < k) & (cols < n), other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    tl.atomic_add(c_ptr + rows * n + cols, total, mask=(rows < m) & (cols < n))


def run(a, b):
    m, k = a.shape
    n = b.shape[1]
    c = torch.zeros((m, n), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64), triton.cdiv(k, _CHUNK))
    kernel[grid](a, b, c, m, n, k, CHUNK=_CHUNK, BLOCK=64)
    return c
