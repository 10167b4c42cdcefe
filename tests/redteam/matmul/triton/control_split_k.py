# class: split K
# kind: control
# how: parts of K summed apart and added by a second kernel: other rounding, same bound

import torch
import triton
import triton.language as tl

_CHUNK = 1024 if torch.cuda.is_available() else 64


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, m, n, k, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    rows = (tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK))[:, None]
    cols = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK))[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    split = tl.program_id(2).to(tl.int64)
    for start in range(split * CHUNK, tl.minimum(k, split * CHUNK + CHUNK), BLOCK):
        inner = start + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + rows * k + inner[None, :], mask=(rows < m) & (inner[None, :] < k), other=0.0)
        b = tl.load(b_ptr + inner[:, None] * n + cols, mask=(inner[:, None] < k) & (cols < n), other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    c_ptr += split * m * n
    tl.store(c_ptr + rows * n + cols, total, mask=(rows < m) & (cols < n))


@triton.jit
def reduce(parts_ptr, c_ptr, size, splits, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < size
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(splits):
        total += tl.load(parts_ptr + offsets, mask=mask, other=0.0)
        parts_ptr += size
    tl.store(c_ptr + offsets, total, mask=mask)


def run(a, b):
    m, k = a.shape
    n = b.shape[1]
    splits = triton.cdiv(k, _CHUNK)
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    parts = torch.empty((splits, m, n), dtype=torch.float32, device=a.device)
    kernel[(triton.cdiv(m, 64), triton.cdiv(n, 64), splits)](a, b, parts, m, n, k, CHUNK=_CHUNK, BLOCK=64)
    reduce[(triton.cdiv(m * n, 1024),)](parts, c, m * n, splits, BLOCK=1024)
    return c
