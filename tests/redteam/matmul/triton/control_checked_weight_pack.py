# class: checked weight cache
# kind: control
# how: keeps one packed weight and compares the whole weight with the one it was packed from

import torch
import triton
import triton.language as tl

_kept = None
_packed = None


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, m, n, k, BLOCK: tl.constexpr):
    rows = (tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK))[:, None]
    cols = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK))[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BLOCK):
        inner = start + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + rows * k + inner[None, :], mask=(rows < m) & (inner[None, :] < k), other=0.0)
        b = tl.load(b_ptr + cols * k + inner[:, None], mask=(inner[:, None] < k) & (cols < n), other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    tl.store(c_ptr + rows * n + cols, total, mask=(rows < m) & (cols < n))


def pack(b):
    """The transposed weight, made anew whenever the weight's contents are not those it was made of."""
    global _kept, _packed
    same = _kept is not None and _kept.shape == b.shape and _kept.device == b.device and torch.equal(_kept, b)
    if not same:
        _kept, _packed = b.clone(), b.t().clone(memory_format=torch.contiguous_format)
    return _packed


def run(a, b):
    packed = pack(b)
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 64), triton.cdiv(n, 64))](a, packed, c, m, n, k, BLOCK=64)
    return c
