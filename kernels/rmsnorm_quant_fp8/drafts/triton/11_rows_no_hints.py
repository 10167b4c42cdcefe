"""Some short rows a block share the weight and store neighbouring scales together; no hints.

Hypothesis: a row's scale is four bytes in each of its groups' lines, so a row of 32 groups stores to 32 sectors of
which it fills an eighth. Four rows in one block store 16 neighbouring bytes, and the weight is read once for them.
Predicted: 2 % at 4096 columns. Metrics: sectors a store request from 32 to 8.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(
    x_ptr, residual_ptr, weight_ptr, q_ptr, scales_ptr, out_ptr, eps, tokens, groups, padded,
    R: tl.constexpr, G: tl.constexpr,
):  # fmt: skip
    first = tl.program_id(0) * R
    row = first + tl.arange(0, R)
    group = tl.arange(0, G)
    within = group[:, None] * 128 + tl.arange(0, 128)[None, :]
    offsets = tl.arange(0, R)[:, None, None] * (groups * 128) + within[None, :, :]
    start = first.to(tl.int64) * (groups * 128)
    mask = (row < tokens)[:, None, None] & (group < groups)[None, :, None]

    x = tl.load(x_ptr + start + offsets, mask=mask, other=0.0)
    residual = tl.load(residual_ptr + start + offsets, mask=mask, other=0.0)
    weight = tl.load(weight_ptr + within, mask=group[:, None] < groups, other=0.0)
    h = x.to(tl.float32) + residual.to(tl.float32)
    tl.store(out_ptr + start + offsets, h.to(out_ptr.dtype.element_ty), mask=mask)

    rstd = tl.rsqrt(tl.sum(tl.sum(h * h, 2), 1) / (groups * 128) + eps)
    y = h * rstd[:, None, None] * weight.to(tl.float32)[None, :, :]
    amax = tl.maximum(tl.max(tl.abs(y), 2), 1e-4)
    q = y * (448.0 / amax)[:, :, None]
    tl.store(q_ptr + start + offsets, q.to(q_ptr.dtype.element_ty), mask=mask)

    scale = tl.where((row < tokens)[:, None], amax * (1 / 448.0), 0.0)  # zeros into the padding
    at = scales_ptr + group[None, :] * padded + row[:, None]
    tl.store(at, scale, mask=(group < groups)[None, :] & (row < padded)[:, None])


def run(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    tokens, hidden = x.shape
    groups, padded = hidden // 128, triton.cdiv(tokens, 4) * 4
    q = torch.empty_like(x, dtype=torch.float8_e4m3fn)
    scales = x.new_empty(groups, padded, dtype=torch.float32)
    out = torch.empty_like(x)
    block = triton.next_power_of_2(groups)
    rows = max(1, min(8, 64 // block))
    rows_kernel[(triton.cdiv(padded, rows),)](
        x, residual, weight, q, scales, out, eps, tokens, groups, padded,
        R=rows, G=block, num_warps=max(1, min(16, rows * block // 8)),
    )  # fmt: skip
    return q, scales, out
