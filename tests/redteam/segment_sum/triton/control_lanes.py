# class: other summation order
# kind: control
# how: keeps a partial sum a lane of 256 rows and adds the lanes at the very end

import triton
import triton.language as tl


@triton.jit
def kernel(v_ptr, offsets_ptr, out_ptr, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    group = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * COLS + tl.arange(0, COLS)
    first = tl.load(offsets_ptr + group)
    last = tl.load(offsets_ptr + group + 1)
    total = tl.zeros((ROWS, COLS), tl.float32)
    for start in range(first, last, ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows[:, None] < last) & (columns[None, :] < cols)
        values = tl.load(v_ptr + rows[:, None].to(tl.int64) * cols + columns[None, :], mask=mask, other=0.0)
        total += values
    tl.store(out_ptr + group * cols + columns, tl.sum(total, 0), mask=columns < cols)


def run(values, offsets, out):
    groups, cols = out.shape
    kernel[(groups, triton.cdiv(cols, 64))](values, offsets, out, cols, ROWS=256, COLS=64)
