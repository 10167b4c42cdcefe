# class: one output for all calls
# kind: attack
# how: allocates the output once for a shape and overwrites what the caller still holds
# caught: probes
# status: CACHED_RESULT
# defence: earlier outputs held and compared later
# source: seed Rule 11 W1, gpu-mode#104

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * cols + at, e / tl.sum(e, 0), mask=at < cols)


def softmax(x):
    rows, cols = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return y


_outputs = {}


def run(x):
    rows, cols = x.shape
    y = _outputs.setdefault((rows, cols), torch.empty_like(x))
    softmax_kernel[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return y
