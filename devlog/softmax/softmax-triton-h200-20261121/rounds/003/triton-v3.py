"""Softmax: a row of up to 32768 elements stays in registers between the passes; longer rows in chunks whose second read should hit L2: evict_last first, evict_first after."""

import torch
import triton
import triton.language as tl

IN_REGISTERS = 32768
ELEMENTS_A_THREAD = 16


@triton.jit
def row_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < cols
    x = tl.load(x_ptr + row * cols + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    y = e / tl.sum(e, 0)
    tl.store(y_ptr + row * cols + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def chunked_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * cols
    y_ptr += row * cols
    offsets = tl.arange(0, BLOCK)
    largest = -float("inf")
    total = 0.0
    for start in range(0, cols, BLOCK):
        mask = start + offsets < cols
        x = tl.load(x_ptr + start + offsets, mask=mask, other=-float("inf"), eviction_policy="evict_last").to(tl.float32)
        new = tl.maximum(largest, tl.max(x, 0))
        safe = tl.where(new == -float("inf"), 0.0, new)  # a chunk that is masked throughout
        total = total * tl.exp(largest - safe) + tl.sum(tl.exp(x - safe), 0)
        largest = new
    for start in range(0, cols, BLOCK):
        mask = start + offsets < cols
        x = tl.load(x_ptr + start + offsets, mask=mask, other=-float("inf"), eviction_policy="evict_first").to(tl.float32)
        y = tl.exp(x - largest) / total
        tl.store(y_ptr + start + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


def warps(block: int) -> int:
    """Enough threads that each holds ELEMENTS_A_THREAD elements, from 1 to 32 warps."""
    return max(1, min(32, block // (32 * ELEMENTS_A_THREAD)))


def run(x: torch.Tensor) -> torch.Tensor:
    rows, cols = x.shape
    y = torch.empty_like(x)
    block = triton.next_power_of_2(cols)
    if block <= IN_REGISTERS:
        row_kernel[(rows,)](x, y, cols, BLOCK=block, num_warps=warps(block))
    else:
        chunked_kernel[(rows,)](x, y, cols, BLOCK=16384, num_warps=16)
    return y
