"""Blocks that stay: each takes one row after the other, and the next row is on its way while this one is worked
on.

Hypothesis: a block of one row loads, then computes, then stores, and only other blocks of its multiprocessor
fill the gaps; the weight is read again by every block. Here two blocks a multiprocessor keep the weight in
registers and copy the next row into shared memory asynchronously. Loads are always under way, and L2 serves no
weights.
Predicted: 3 to 8 % at 8192x7168 and 16384x4096; nothing at 128 rows. Metrics: dram__throughput over 88 %, L2 to
L1 traffic down by a fifth.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def persistent_kernel(
    x_ptr, residual_ptr, weight_ptr, q_ptr, scales_ptr, out_ptr, eps, tokens, groups, padded,
    G: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    group = tl.arange(0, G)
    offsets = group[:, None] * 128 + tl.arange(0, 128)[None, :]
    mask = group[:, None] < groups
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0)
    mean = 1.0 / (groups * 128)
    hidden = tl.full((), 128, tl.int64) * groups

    for row in tl.range(tl.program_id(0), tokens, tl.num_programs(0), num_stages=STAGES):
        start = hidden * row
        x = tl.load(x_ptr + start + offsets, mask=mask, other=0.0)
        residual = tl.load(residual_ptr + start + offsets, mask=mask, other=0.0)
        h = x.to(tl.float32) + residual.to(tl.float32)
        tl.store(out_ptr + start + offsets, h.to(out_ptr.dtype.element_ty), mask=mask)
        rstd = tl.rsqrt(tl.sum(tl.sum(h * h, 1), 0) * mean + eps)
        y = h * rstd * weight.to(tl.float32)
        amax = tl.maximum(tl.max(tl.abs(y), 1), 1e-4)
        q = y * (448.0 / amax)[:, None]
        tl.store(q_ptr + start + offsets, q.to(q_ptr.dtype.element_ty), mask=mask)
        tl.store(scales_ptr + group * padded + row, amax * (1 / 448.0), mask=group < groups)

    if tl.program_id(0) == 0:
        for ahead in tl.static_range(3):
            at = scales_ptr + group * padded + tokens + ahead
            tl.store(at, 0.0, mask=(group < groups) & (tokens + ahead < padded))


def run(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    tokens, hidden = x.shape
    groups, padded = hidden // 128, triton.cdiv(tokens, 4) * 4
    q = torch.empty_like(x, dtype=torch.float8_e4m3fn)
    scales = x.new_empty(groups, padded, dtype=torch.float32)
    out = torch.empty_like(x)
    block = triton.next_power_of_2(groups)
    warps = max(1, min(16, block // 8))
    blocks = torch.cuda.get_device_properties(x.device).multi_processor_count * (16 // warps)
    persistent_kernel[(min(tokens, blocks),)](
        x, residual, weight, q, scales, out, eps, tokens, groups, padded, G=block, STAGES=2, num_warps=warps
    )
    return q, scales, out
