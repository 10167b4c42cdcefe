"""Blocks that stay: tiles of 4 rows by 4 groups one after the other, the next two on their way into shared
memory.

Hypothesis: a block of 02 loads, computes and stores once; only its neighbours cover its waiting, and each start
and end of a block drains the loads in flight. Here as many blocks as fit walk over the tiles with asynchronous
copies two tiles ahead, so that loads never pause. The price is a pass through shared memory and fewer blocks.
Predicted: 2 to 6 % over 02 if it waits for memory; a loss if issue limits it. Metrics: long-scoreboard stalls,
dram__throughput over 88 %.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def persistent_kernel(
    x_ptr, q_ptr, scales_ptr, tokens, groups, padded, across, count,
    R: tl.constexpr, G: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, 128)
    width = tl.full((), 128, tl.int64) * groups
    for tile in tl.range(tl.program_id(0), count, tl.num_programs(0), num_stages=STAGES):
        row = tile // across * R + tl.arange(0, R)
        group = tile % across * G + tl.arange(0, G)
        start = width * (tile // across * R)
        within = group[:, None] * 128 + column[None, :]
        rows = tl.arange(0, R)[:, None, None] * (groups * 128)
        mask = (row < tokens)[:, None, None] & (group < groups)[None, :, None]

        gates = x_ptr + 2 * start + 2 * rows + within[None, :, :]
        gate = tl.load(gates, mask=mask, other=0.0).to(tl.float32)
        up = tl.load(gates + groups * 128, mask=mask, other=0.0).to(tl.float32)
        a = gate / (1 + tl.exp(-gate)) * up
        amax = tl.maximum(tl.max(tl.abs(a), 2), 1e-4)
        q = a * (448.0 / amax)[:, :, None]
        tl.store(q_ptr + start + rows + within[None, :, :], q.to(q_ptr.dtype.element_ty), mask=mask)

        scale = tl.where((row < tokens)[:, None], amax * (1 / 448.0), 0.0)
        at = scales_ptr + group[None, :] * padded + row[:, None]
        tl.store(at, scale, mask=(group < groups)[None, :] & (row < padded)[:, None])


def run(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    tokens, groups = x.shape[0], x.shape[1] // 256
    padded = triton.cdiv(tokens, 4) * 4
    q = torch.empty(tokens, groups * 128, dtype=torch.float8_e4m3fn, device=x.device)
    scales = torch.empty(groups, padded, dtype=torch.float32, device=x.device)
    block = min(4, triton.next_power_of_2(groups))
    rows = min(4, padded)
    across = triton.cdiv(groups, block)
    count = across * triton.cdiv(padded, rows)
    blocks = 8 * torch.cuda.get_device_properties(x.device).multi_processor_count
    persistent_kernel[(min(count, blocks),)](
        x, q, scales, tokens, groups, padded, across, count, R=rows, G=block, STAGES=3, num_warps=4
    )
    return q, scales
