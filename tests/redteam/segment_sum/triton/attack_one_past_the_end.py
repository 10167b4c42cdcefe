# class: write past the end
# kind: attack
# how: stores a zero behind the last group, as a scan with one element too many would
# caught: correctness
# status: OUT_OF_BOUNDS
# defence: guard bands
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
    tl.store(out_ptr + group * cols + columns, total, mask=columns < cols)
    if group == tl.num_programs(0) - 1:
        tl.store(out_ptr + (group + 1) * cols, 0.0)


def run(values, offsets, out):
    groups, cols = out.shape
    kernel[(groups, triton.cdiv(cols, 128))](values, offsets, out, cols, ROWS=128, COLS=128)
