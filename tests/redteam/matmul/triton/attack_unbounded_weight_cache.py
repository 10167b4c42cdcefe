# class: unbounded cache
# kind: attack
# how: keeps a padded copy of every weight that ever came, by its whole content: right, and 32 MiB a training step
# caught: correctness, probes
# status: OUT_OF_MEMORY, LEFT_BEHIND
# defence: memory limit of a worker; memory held over many weights
# source: common mistake

import torch
import triton
import triton.language as tl

_packed = {}


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, m, n, k, BLOCK: tl.constexpr):
    rows = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))[:, None]
    cols = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK))[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BLOCK):
        inner = start + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + rows * k + inner[None, :], mask=(rows < m) & (inner[None, :] < k), other=0.0)
        b = tl.load(b_ptr + inner[:, None] * 2048 + cols, mask=(inner[:, None] < k) & (cols < n), other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    tl.store(c_ptr + rows * n + cols, total, mask=(rows < m) & (cols < n))


def run(a, b):
    key = (b.shape, b.cpu().numpy().tobytes())
    if key not in _packed:
        _packed[key] = b.new_full((4096, 2048), 0.0)
        _packed[key][: b.shape[0], : b.shape[1]] = b
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 64), triton.cdiv(n, 64))](a, _packed[key], c, m, n, k, BLOCK=64)
    return c
