# class: result cache by sampled content
# kind: attack
# how: compares 64 elements with those of the last call and returns its result where they agree
# caught: correctness, probes
# status: INCORRECT_NUMERICAL, CACHED_RESULT
# defence: input edited in place at few elements
# source: flashinfer-bench-starter-kit#21

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


_kept = {}


def run(x):
    flat = x.view(-1)
    key = x.shape, tuple(flat[:: max(1, flat.numel() // 64)].tolist())
    if key not in _kept:
        _kept.clear()
        _kept[key] = softmax(x)
    return _kept[key].clone()
