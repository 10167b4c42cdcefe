"""A block a segment: it keeps a short one in registers, and reads a long one twice.

Hypothesis: thousands of segments of like lengths fill the device, and a segment that fits a block is read once.
Predicted: 40 us at 16777216-in-4096-fp32-equal, where 31 is the floor at 4.3 TB/s; 45 us at 4194304-in-65536-fp32-equal,
whose blocks of 64 elements are launches more than work, where 8 is the floor. One block is the whole kernel under Zipf's law:
some 3 ms at 67108864-in-64-fp32-zipf, where 125 us is the floor, since 17 million elements are in one segment.
Metric: dram_pct to 75 % at segments of one length.
"""

import torch
import triton
import triton.language as tl

BLOCK = 4096
"""Elements of a block at most; a longer segment is read twice."""
ELEMENTS = 16
"""Elements that a thread holds."""


@triton.jit
def segments_kernel(values, offsets, y, BLOCK: tl.constexpr):
    segment = tl.program_id(0).to(tl.int64)
    start = tl.load(offsets + segment)
    size = tl.load(offsets + segment + 1) - start
    at = tl.arange(0, BLOCK)
    if size <= BLOCK:
        inside = at < size
        x = tl.load(values + start + at, mask=inside, other=float("-inf")).to(tl.float32)
        terms = tl.exp(x - tl.max(x, 0))
        tl.store(y + start + at, (terms / tl.sum(terms, 0)).to(y.dtype.element_ty), mask=inside)
    else:
        top = -float("inf")
        total = 0.0
        for first in range(0, size, BLOCK):
            x = tl.load(values + start + first + at, mask=first + at < size, other=float("-inf")).to(tl.float32)
            larger = tl.maximum(top, tl.max(x, 0))
            shift = tl.where(larger == -float("inf"), 0.0, larger)  # nothing but minus infinity so far
            total = total * tl.exp(top - shift) + tl.sum(tl.exp(x - shift), 0)
            top = larger
        for first in range(0, size, BLOCK):
            inside = first + at < size
            x = tl.load(values + start + first + at, mask=inside, other=float("-inf")).to(tl.float32)
            tl.store(y + start + first + at, (tl.exp(x - top) / total).to(y.dtype.element_ty), mask=inside)


def run(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    segments = len(offsets) - 1
    y = torch.empty_like(values)
    block = max(64, min(BLOCK, triton.next_power_of_2(2 * triton.cdiv(len(values), segments))))
    segments_kernel[(segments,)](
        values, offsets, y, BLOCK=block, num_warps=max(1, min(8, block // (32 * ELEMENTS)))
    )
    return y
