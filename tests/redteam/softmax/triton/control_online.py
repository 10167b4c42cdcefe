# class: online softmax
# kind: control
# how: maximum and sum in one pass over chunks, rescaled as the maximum moves

import torch
import triton
import triton.language as tl


@triton.jit
def online_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    x_ptr += row * cols
    y_ptr += row * cols
    largest = -float("inf")
    total = 0.0
    for start in range(0, cols, BLOCK):
        x = tl.load(x_ptr + start + at, mask=start + at < cols, other=-float("inf"))
        new = tl.maximum(largest, tl.max(x, 0))
        shift = tl.where(new == -float("inf"), 0.0, new)  # a chunk that is masked throughout
        total = total * tl.exp(largest - shift) + tl.sum(tl.exp(x - shift), 0)
        largest = new
    for start in range(0, cols, BLOCK):
        x = tl.load(x_ptr + start + at, mask=start + at < cols)
        tl.store(y_ptr + start + at, tl.exp(x - largest) / total, mask=start + at < cols)


def run(x):
    rows, cols = x.shape
    y = torch.empty_like(x)
    online_kernel[(rows,)](x, y, cols, BLOCK=4096, num_warps=8)
    return y
