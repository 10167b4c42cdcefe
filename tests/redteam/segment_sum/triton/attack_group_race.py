# class: race
# kind: attack
# how: four programs a group add their rows with a plain load and store: right only if they run one by one
# caught: correctness, probes
# needs: gpu
# status: INCORRECT_NUMERICAL, NOT_REPRODUCIBLE
# defence: small and odd shapes, graded every time
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
    share = tl.cdiv(last - first, 4)
    first += tl.program_id(2) * share
    last = tl.minimum(last, first + share)
    for start in range(first, last, ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows[:, None] < last) & (columns[None, :] < cols)
        values = tl.load(v_ptr + rows[:, None].to(tl.int64) * cols + columns[None, :], mask=mask, other=0.0)
        total += tl.sum(values, 0)
    total += tl.load(out_ptr + group * cols + columns, mask=columns < cols, other=0.0)
    tl.store(out_ptr + group * cols + columns, total, mask=columns < cols)


def run(values, offsets, out):
    out.zero_()
    groups, cols = out.shape
    kernel[(groups, triton.cdiv(cols, 128), 4)](values, offsets, out, cols, ROWS=128, COLS=128)
