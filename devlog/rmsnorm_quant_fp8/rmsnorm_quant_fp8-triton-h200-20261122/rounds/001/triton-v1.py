"""One block a row, the row as a tile of groups by 128 in registers.

Hypothesis: each byte crosses memory once, so this is bandwidth-bound from the start; torch.compile writes y and
reads it again. A thread holds 8 neighbours, so x and residual move in 16-byte loads, and a group's maximum
needs shuffles within half a warp alone: the reshape to (groups, 128) costs no exchange through shared memory.
Predicted: 105 to 115 us at 8192x7168 (floor 96), 10 to 25 % over torch.compile. Metric: dram__throughput to 85
%.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(
    x_ptr, residual_ptr, weight_ptr, q_ptr, scales_ptr, out_ptr, eps, tokens, groups, padded, G: tl.constexpr
):
    row = tl.program_id(0)
    group = tl.arange(0, G)
    offsets = group[:, None] * 128 + tl.arange(0, 128)[None, :]
    mask = group[:, None] < groups
    start = row.to(tl.int64) * (groups * 128)

    x = tl.load(x_ptr + start + offsets, mask=mask, other=0.0).to(tl.float32)
    h = x + tl.load(residual_ptr + start + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + start + offsets, h.to(out_ptr.dtype.element_ty), mask=mask)

    rstd = tl.rsqrt(tl.sum(tl.sum(h * h, 1), 0) / (groups * 128) + eps)
    y = h * rstd * tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    amax = tl.maximum(tl.max(tl.abs(y), 1), 1e-4)
    q = y * (448.0 / amax)[:, None]
    tl.store(q_ptr + start + offsets, q.to(q_ptr.dtype.element_ty), mask=mask)

    at = scales_ptr + group * padded + row
    tl.store(at, amax * (1 / 448.0), mask=group < groups)
    if row == tokens - 1:
        for ahead in tl.static_range(1, 4):
            tl.store(at + ahead, 0.0, mask=(group < groups) & (row + ahead < padded))


def run(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    tokens, hidden = x.shape
    groups, padded = hidden // 128, triton.cdiv(tokens, 4) * 4
    q = torch.empty_like(x, dtype=torch.float8_e4m3fn)
    scales = x.new_empty(groups, padded, dtype=torch.float32)
    out = torch.empty_like(x)
    block = triton.next_power_of_2(groups)
    row_kernel[(tokens,)](
        x, residual, weight, q, scales, out, eps, tokens, groups, padded,
        G=block, num_warps=max(1, min(16, block // 8)),
    )  # fmt: skip
    return q, scales, out
