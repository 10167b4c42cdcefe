# class: workspace reused in place
# kind: control
# how: a row in four parts, their maxima in a workspace that is allocated once a shape; the result is new each time

import torch
import triton
import triton.language as tl

_PARTS = 4
_workspaces = {}


@triton.jit
def part_kernel(x_ptr, value_ptr, place_ptr, cols, width, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row, part, lane = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.arange(0, BLOCK)
    at = part * width + lane
    inside = (lane < width) & (at < cols)
    x = tl.load(x_ptr + row * cols + at, mask=inside, other=-float("inf"))
    largest = tl.max(x, 0)
    tl.store(value_ptr + row * PARTS + part, largest)
    tl.store(place_ptr + row * PARTS + part, tl.min(tl.where((x == largest) & inside, at, cols), 0))


@triton.jit
def whole_kernel(value_ptr, place_ptr, index_ptr, cols, PARTS: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.arange(0, PARTS)
    value = tl.load(value_ptr + row * PARTS + part)
    place = tl.load(place_ptr + row * PARTS + part)
    first = tl.min(tl.where(value == tl.max(value, 0), place, cols), 0)
    tl.store(index_ptr + row, first.to(tl.int64))


def run(x):
    rows, cols = x.shape
    if (rows, cols) not in _workspaces:
        values = torch.empty(rows * _PARTS, dtype=torch.float32, device=x.device)
        _workspaces[rows, cols] = values, torch.empty_like(values, dtype=torch.int32)
    values, places = _workspaces[rows, cols]
    index = torch.empty(rows, dtype=torch.int64, device=x.device)
    width = triton.cdiv(cols, _PARTS)
    block = triton.next_power_of_2(width)
    part_kernel[(rows, _PARTS)](x, values, places, cols, width, PARTS=_PARTS, BLOCK=block)
    whole_kernel[(rows,)](values, places, index, cols, PARTS=_PARTS)
    return index
