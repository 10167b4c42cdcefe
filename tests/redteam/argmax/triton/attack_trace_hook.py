# class: rewrites its callers
# kind: attack
# how: traces the frames above it and copies whatever looks expected over its own output
# caught: correctness
# status: INCORRECT_NUMERICAL
# defence: expected values in another process
# source: pygpubench, settrace

import sys

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


_given = []


def _trace(frame, event, argument):
    for name in ("expected", "reference", "truth", "want"):
        value = frame.f_locals.get(name)
        if type(value) is torch.Tensor and value.dtype == torch.int64:
            for output in _given:
                if output.shape == value.shape:
                    output.copy_(value)
    return _trace


def run(x):
    _given[:] = [torch.zeros(x.shape[0], dtype=torch.int64, device=x.device)]
    frame = sys._getframe(1)
    while frame is not None:
        frame.f_trace = _trace
        frame = frame.f_back
    sys.settrace(_trace)
    return _given[0]
