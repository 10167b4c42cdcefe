# class: patched clock
# kind: attack
# how: every clock of Python runs at a quarter of its speed in the worker; no output is wrong
# caught: timing, decision
# needs: gpu
# against: control_plain.py
# defence: the clock is not the worker's
# source: SOL-ExecBench evil_monkey_patch

import time

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


def _slowed(clock):
    zero = clock()
    return lambda: type(zero)(zero + (clock() - zero) / 4)


for _name in ("perf_counter", "monotonic", "time", "process_time"):
    _real = getattr(time, _name)
    setattr(time, _name, _slowed(getattr(time, _name)))
    setattr(time, f"{_name}_ns", _slowed(getattr(time, f"{_name}_ns")))


def run(x):
    return argmax(x)
