"""PyTorch's all-reduce over symmetric memory, one-shot or two-shot by size, and one kernel for the rest.

One-shot reads every peer's part: one exchange, (ranks - 1) times the part. Two-shot reduces a share and gathers
the shares: two exchanges, at most twice the part.
"""

from typing import Any

import torch
import torch.distributed
import triton
import triton.language as tl

ONE_SHOT_BYTES = 1 << 18
"""Largest part that is reduced in one exchange. Beyond, PyTorch's one-shot has too few threads even on two."""

_buffers: dict[Any, torch.Tensor] = {}


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


def _open_buffer(elements: int, like: torch.Tensor) -> torch.Tensor:
    """Allocate symmetric memory for one part; every rank must call it, in the same order."""
    from torch._C._distributed_c10d import _SymmetricMemory

    step = 16 * torch.distributed.get_world_size()  # two-shot shares out 16 bytes at a time
    size = triton.cdiv(elements * like.itemsize, step) * step // like.itemsize
    # Memory of its own: in the pool of `symm_mem.empty` it may begin within a block, which these kernels overlook.
    buffer = _SymmetricMemory.empty_strided_p2p((size,), (1,), like.dtype, like.device)
    _SymmetricMemory.rendezvous(buffer, torch.distributed.group.WORLD.group_name)
    return buffer.zero_()


def run(
    partial: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return this rank's results; `partial` has the shape (1, rows, cols)."""
    rows, cols = residual.shape
    key = (rows, cols, partial.dtype)
    if key not in _buffers:
        _buffers[key] = _open_buffer(rows * cols, partial)
    buffer, group = _buffers[key], torch.distributed.group.WORLD.group_name
    one_shot = partial.nbytes <= ONE_SHOT_BYTES
    if one_shot and buffer.numel() == rows * cols:
        total = torch.ops.symm_mem.one_shot_all_reduce_copy(buffer, partial.view(-1), "sum", group)
    else:
        buffer[: rows * cols].copy_(partial.view(-1))
        reduce = torch.ops.symm_mem.one_shot_all_reduce if one_shot else torch.ops.symm_mem.two_shot_all_reduce_
        total = reduce(buffer, "sum", group)
    y, hidden = torch.empty_like(residual), torch.empty_like(residual)
    block = triton.next_power_of_2(cols)
    warps = max(1, min(16, block // 512))
    norm_kernel[(rows,)](total, residual, weight, y, hidden, cols, eps, BLOCK=block, num_warps=warps)
    return y, hidden
