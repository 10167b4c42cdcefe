# class: stale workspace
# kind: attack
# how: keeps a zeroed workspace and adds up all its parts: those that a longer K left behind come along
# caught: correctness
# status: INCORRECT_NUMERICAL
# defence: large shapes before small ones in one process
# source: common mistake

import torch
import triton
import triton.language as tl

_CHUNK = 64
_PARTS = 8
_workspaces = {}


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
    c_ptr += split * m * n
    tl.store(c_ptr + rows * n + cols, total, mask=(rows < m) & (cols < n))


@triton.jit
def reduce(parts_ptr, c_ptr, size, splits, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < size
    total = tl.zeros((BLOCK,), tl.float32)
    for split in range(splits):
        total += tl.load(parts_ptr + split * size + offsets, mask=mask, other=0.0)
    tl.store(c_ptr + offsets, total, mask=mask)


def workspace(elements, device):
    if elements > len(_workspaces.get(device, ())):
        _workspaces[device] = torch.zeros((elements,), dtype=torch.float32, device=device)
    return _workspaces[device]


def run(a, b):
    m, k = a.shape
    n = b.shape[1]
    splits = triton.cdiv(k, _CHUNK)
    kept = max(splits, _PARTS)
    parts = workspace(kept * 2**16, a.device) if m * n < 2**16 else a.new_zeros((kept * m * n,))
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 64), triton.cdiv(n, 64), splits)](a, b, parts, m, n, k, CHUNK=_CHUNK, BLOCK=64)
    reduce[(triton.cdiv(m * n, 1024),)](parts, c, m * n, kept, BLOCK=1024)
    return c
