# class: CUDA graph with stale inputs
# kind: attack
# how: captures a graph over the first tensor of a shape and replays it for every other one
# caught: correctness, probes, timing
# status: INCORRECT_NUMERICAL
# needs: gpu
# defence: same content at another pointer
# source: common mistake

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * cols + at, e / tl.sum(e, 0), mask=at < cols)


def softmax(x):
    rows, cols = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return y


_graphs = {}


def run(x):
    if x.shape not in _graphs:
        softmax(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = softmax(x)  # reads this x for ever
        _graphs[x.shape] = graph, x, y
    graph, _, y = _graphs[x.shape]
    graph.replay()
    return y.clone()
