# class: process leak
# kind: attack
# how: leaves a process of its own session behind at the first call
# caught: correctness, probes
# status: LEFT_BEHIND
# defence: processes of a worker counted
# source: common mistake

import subprocess

import triton
import triton.language as tl

_left = []


@triton.jit
def kernel(v_ptr, offsets_ptr, out_ptr, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    group = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * COLS + tl.arange(0, COLS)
    first = tl.load(offsets_ptr + group)
    last = tl.load(offsets_ptr + group + 1)
    total = tl.zeros((COLS,), tl.float32)
    for start in range(first, last, ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows[:, None] < last) & (columns[None, :] < cols)
        values = tl.load(v_ptr + rows[:, None].to(tl.int64) * cols + columns[None, :], mask=mask, other=0.0)
        total += tl.sum(values, 0)
    tl.store(out_ptr + group * cols + columns, total, mask=columns < cols)


def reduce(values, offsets, out):
    groups, cols = out.shape
    kernel[(groups, triton.cdiv(cols, 128))](values, offsets, out, cols, ROWS=128, COLS=128)


def run(values, offsets, out):
    if not _left:
        _left.append(subprocess.Popen(["sleep", "600"], start_new_session=True))
    reduce(values, offsets, out)
