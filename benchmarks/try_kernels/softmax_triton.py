"""Softmax in three passes over each row, with two constants to sweep."""

import torch
import triton
import triton.language as tl

BLOCK = 2048
WARPS = 8


@triton.jit
def softmax_rows(x, y, cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    lanes = tl.arange(0, BLOCK_SIZE)
    peaks = tl.full((BLOCK_SIZE,), float("-inf"), tl.float32)
    WARPSMITH_PHASE("peak")
    for start in range(0, cols, BLOCK_SIZE):
        valid = start + lanes < cols
        peaks = tl.maximum(peaks, tl.load(x + row + start + lanes, mask=valid, other=float("-inf")).to(tl.float32))
    peak = tl.max(peaks, axis=0)
    WARPSMITH_PHASE("sum")
    sums = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, cols, BLOCK_SIZE):
        valid = start + lanes < cols
        value = tl.load(x + row + start + lanes, mask=valid, other=float("-inf")).to(tl.float32)
        sums += tl.exp(value - peak)
    scale = 1.0 / tl.sum(sums, axis=0)
    WARPSMITH_PHASE("write")
    for start in range(0, cols, BLOCK_SIZE):
        valid = start + lanes < cols
        value = tl.load(x + row + start + lanes, mask=valid, other=float("-inf")).to(tl.float32)
        tl.store(y + row + start + lanes, (tl.exp(value - peak) * scale).to(y.dtype.element_ty), mask=valid)
    WARPSMITH_PHASE("end")


def run(x):
    y = torch.empty_like(x)
    softmax_rows[(x.shape[0],)](x, y, x.shape[1], BLOCK_SIZE=BLOCK, num_warps=WARPS)
    return y
