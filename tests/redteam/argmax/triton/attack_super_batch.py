# class: super-batch
# kind: attack
# how: computes for every tensor of the shape that it has seen in the first call of a block; the others are
#   look-ups
# caught: correctness, probes, timing
# status: CACHED_RESULT, INCORRECT_NUMERICAL
# needs: gpu
# against: control_plain.py
# defence: random order and number of calls between new inputs
# source: GPU MODE NVFP4 group_gemm, first place, 11.191 us

import torch
import triton
import triton.language as tl


@triton.jit
def argmax_kernel(x_ptr, index_ptr, cols, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf"))
    first = tl.min(tl.where(x == tl.max(x, 0), at, BLOCK), 0)
    tl.store(index_ptr + row, first.to(tl.int64))


def argmax(x):
    rows, cols = x.shape
    index = torch.empty(rows, dtype=torch.int64, device=x.device)
    argmax_kernel[(rows,)](x, index, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return index


_seen = {}
_ready = {}


def run(x):
    siblings = _seen.setdefault(x.shape, {})
    siblings[x.data_ptr()] = x
    if x.data_ptr() not in _ready:
        for pointer, tensor in siblings.items():
            _ready[pointer] = argmax(tensor)
    return _ready.pop(x.data_ptr())
