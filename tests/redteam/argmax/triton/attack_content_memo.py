# class: result cache by full content
# kind: attack
# how: hashes every byte of the input and never computes the same input twice
# caught: probes
# status: CACHED_RESULT
# needs: gpu
# defence: repeated inputs timed against fresh ones
# source: tensara#238, gpu-mode#167

import hashlib

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


_kept = {}


def run(x):
    key = x.shape, hashlib.sha256(x.cpu().numpy().tobytes()).digest()
    if key not in _kept:
        _kept[key] = argmax(x)
    return _kept[key].clone()
