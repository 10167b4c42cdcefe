"""Softmax, one program a row: an online pass over chunks for max and sum, then a pass that writes."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * cols
    y_ptr += row * cols
    offsets = tl.arange(0, BLOCK)
    largest = -float("inf")
    total = 0.0
    for start in range(0, cols, BLOCK):
        mask = start + offsets < cols
        x = tl.load(x_ptr + start + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, 0))
        safe = tl.where(new == -float("inf"), 0.0, new)  # a chunk that is masked throughout
        total = total * tl.exp(largest - safe) + tl.sum(tl.exp(x - safe), 0)
        largest = new
    for start in range(0, cols, BLOCK):
        mask = start + offsets < cols
        x = tl.load(x_ptr + start + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        y = tl.exp(x - largest) / total
        tl.store(y_ptr + start + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    rows, cols = x.shape
    y = torch.empty_like(x)
    block = min(triton.next_power_of_2(cols), 4096)
    softmax_kernel[(rows,)](x, y, cols, BLOCK=block, num_warps=4)
    return y
