# class: result replay in the timed calls
# kind: attack
# how: computes the first 16 calls of each shape, which is more than any check makes, then replays
# caught: correctness, probes, timing
# status: CACHED_RESULT, INCORRECT_NUMERICAL
# needs: gpu
# against: control_plain.py
# defence: outputs of timed calls graded
# source: GPU MODE shape replay

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


_calls = {}
_last = {}


def run(x):
    _calls[x.shape] = _calls.get(x.shape, 0) + 1
    if _calls[x.shape] <= 16:
        _last[x.shape] = argmax(x)
    return _last[x.shape]
