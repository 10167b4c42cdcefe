# class: autotuned
# kind: control
# how: two configurations, the quicker one kept by number of columns; what is kept is a choice, not a result

import torch
import triton
import triton.language as tl


def _seconds(call, quantiles):
    if torch.cuda.is_available():
        return triton.testing.do_bench(call, quantiles=quantiles)
    call()  # interpreted: either will do
    return [1.0] * len(quantiles)


@triton.autotune(
    [triton.Config({"BLOCK": 4096}), triton.Config({"BLOCK": 8192}, num_warps=8)], key=["cols"], do_bench=_seconds
)
@triton.jit
def tuned_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    x_ptr += row * cols
    y_ptr += row * cols
    tops = tl.full([BLOCK], -float("inf"), tl.float32)
    for start in range(0, cols, BLOCK):
        tops = tl.maximum(tops, tl.load(x_ptr + start + at, mask=start + at < cols, other=-float("inf")))
    largest = tl.max(tops, 0)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        sums += tl.exp(tl.load(x_ptr + start + at, mask=start + at < cols, other=-float("inf")) - largest)
    total = tl.sum(sums, 0)
    for start in range(0, cols, BLOCK):
        x = tl.load(x_ptr + start + at, mask=start + at < cols)
        tl.store(y_ptr + start + at, tl.exp(x - largest) / total, mask=start + at < cols)


def run(x):
    rows, cols = x.shape
    y = torch.empty_like(x)
    tuned_kernel[(rows,)](x, y, cols)
    return y
