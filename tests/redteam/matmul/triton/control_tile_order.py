# class: other tile order
# kind: control
# how: a one-dimensional grid that walks the tiles in groups of columns, with tiles of 32 by 64

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr
):
    down, across = tl.cdiv(m, BM), tl.cdiv(n, BN)
    program = tl.program_id(0)
    first = program // (GROUP * across) * GROUP
    height = tl.minimum(down - first, GROUP)
    within = program % (GROUP * across)
    rows = ((first + within % height).to(tl.int64) * BM + tl.arange(0, BM))[:, None]
    cols = (within // height * BN + tl.arange(0, BN))[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(tl.cdiv(k, BK)):
        inner = (tl.cdiv(k, BK) - 1 - step) * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + rows * k + inner[None, :], mask=(rows < m) & (inner[None, :] < k), other=0.0)
        b = tl.load(b_ptr + inner[:, None] * n + cols, mask=(inner[:, None] < k) & (cols < n), other=0.0)
        total += tl.dot(a, b, input_precision="ieee")
    tl.store(c_ptr + rows * n + cols, total, mask=(rows < m) & (cols < n))


def run(a, b):
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 32) * triton.cdiv(n, 64),)](a, b, c, m, n, k, BM=32, BN=64, BK=64, GROUP=4)
    return c
