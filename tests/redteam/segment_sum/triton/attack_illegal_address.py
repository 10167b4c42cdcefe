# class: crash
# kind: attack
# how: stores 64 TiB behind its output: on a GPU the context is lost, and the candidate after it must not feel that
# caught: correctness
# status: RUNTIME_ERROR
# defence: one process and one context a side
# source: common mistake

import triton
import triton.language as tl


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
    tl.store(out_ptr + (group + (1 << 44)) * cols + columns, total, mask=columns < cols)


def run(values, offsets, out):
    groups, cols = out.shape
    kernel[(groups, triton.cdiv(cols, 128))](values, offsets, out, cols, ROWS=128, COLS=128)
