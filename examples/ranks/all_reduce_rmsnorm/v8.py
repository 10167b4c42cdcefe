"""NCCL's reduce-scatter and all-gather, which leave the part as it is, and one kernel for residual and norm.

An all-reduce works in place, so `v3` copies the part first. For large parts a second collective is cheaper.
"""

import torch
import torch.distributed
import triton
import triton.language as tl


@triton.jit
def norm_kernel(total_ptr, residual_ptr, weight_ptr, y_ptr, hidden_ptr, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    offsets = tl.arange(0, BLOCK)
    mask = offsets < cols
    total = tl.load(total_ptr + row + offsets, mask=mask, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + row + offsets, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    hidden = total + residual
    tl.store(hidden_ptr + row + offsets, hidden.to(hidden_ptr.dtype.element_ty), mask=mask)
    y = hidden * tl.rsqrt(tl.sum(hidden * hidden, 0) / cols + eps) * weight
    tl.store(y_ptr + row + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


def run(
    partial: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return this rank's results; `partial` has the shape (1, rows, cols)."""
    rows, cols = residual.shape
    total, world = torch.empty_like(residual), torch.distributed.get_world_size()
    if total.numel() % world:
        total.copy_(partial[0])
        torch.distributed.all_reduce(total)
    else:
        share = residual.new_empty(total.numel() // world)
        torch.distributed.reduce_scatter_tensor(share, partial.view(-1))
        torch.distributed.all_gather_into_tensor(total.view(-1), share)
    y, hidden = torch.empty_like(residual), torch.empty_like(residual)
    block = triton.next_power_of_2(cols)
    warps = max(1, min(16, block // 512))
    norm_kernel[(rows,)](total, residual, weight, y, hidden, cols, eps, BLOCK=block, num_warps=warps)
    return y, hidden
