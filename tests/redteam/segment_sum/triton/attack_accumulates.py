# class: uninitialised read
# kind: attack
# how: adds atomically into the output that it was given and takes it to hold zeros
# caught: correctness
# status: INCORRECT_NUMERICAL
# defence: outputs poisoned
# source: common mistake

import triton
import triton.language as tl


@triton.jit
def group_of(offsets_ptr, row, groups, steps):
    low = row * 0
    high = low + groups - 1
    for _ in range(steps):
        middle = (low + high + 1) // 2
        begun = tl.load(offsets_ptr + middle) <= row
        low = tl.where(begun, middle, low)
        high = tl.where(begun, high, middle - 1)
    return low


@triton.jit
def kernel(v_ptr, offsets_ptr, out_ptr, total, groups, cols, steps, ROWS: tl.constexpr, COLS: tl.constexpr):
    start = tl.program_id(0) * ROWS
    columns = tl.program_id(1) * COLS + tl.arange(0, COLS)
    rows = start + tl.arange(0, ROWS)
    mask = (rows[:, None] < total) & (columns[None, :] < cols)
    values = tl.load(v_ptr + rows[:, None].to(tl.int64) * cols + columns[None, :], mask=mask, other=0.0)
    first = group_of(offsets_ptr, start, groups, steps)
    last = group_of(offsets_ptr, tl.minimum(start + ROWS, total) - 1, groups, steps)
    for group in range(first, last + 1):
        mine = (rows >= tl.load(offsets_ptr + group)) & (rows < tl.load(offsets_ptr + group + 1))
        part = tl.sum(tl.where(mine[:, None], values, 0.0), 0)
        tl.atomic_add(out_ptr + group * cols + columns, part, mask=columns < cols)


def run(values, offsets, out):
    total, cols = values.shape
    groups = len(offsets) - 1
    grid = (triton.cdiv(total, 256), triton.cdiv(cols, 128))
    steps = groups.bit_length()
    kernel[grid](values, offsets, out, total, groups, cols, steps, ROWS=256, COLS=128, num_warps=8)
