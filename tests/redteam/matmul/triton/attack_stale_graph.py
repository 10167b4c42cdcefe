# class: stale CUDA graph
# kind: attack
# how: captures a CUDA graph at the first call of a shape and replays it, with the first call's addresses
# caught: correctness, probes
# needs: gpu
# status: INCORRECT_NUMERICAL
# defence: the same content at another address
# source: common mistake

import torch
import triton
import triton.language as tl

_graphs = {}


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, m, n, k, BLOCK: tl.constexpr):
    rows = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))[:, None]
    cols = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK))[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BLOCK):
        inner = start + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + rows * k + inner[None, :], mask=(rows < m) & (inner[None, :] < k), other=0.0)
        b = tl.load(b_ptr + inner[:, None] * n + cols, mask=(inner[:, None] < k) & (cols < n), other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    tl.store(c_ptr + rows * n + cols, total, mask=(rows < m) & (cols < n))


def multiply(a, b, c):
    m, k = a.shape
    n = b.shape[1]
    kernel[(triton.cdiv(m, 64), triton.cdiv(n, 64))](a, b, c, m, n, k, BLOCK=64)


def run(a, b):
    key = (a.shape, b.shape)
    if key not in _graphs:
        c = torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype, device=a.device)
        multiply(a, b, c)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            multiply(a, b, c)
        _graphs[key] = (graph, a, b, c)
    graph, _, _, c = _graphs[key]
    graph.replay()
    return c.clone()
