"""vLLM's custom all-reduce, one-shot or two-shot by size, and one kernel for the residual and the norm.

As vLLM does outside of CUDA graphs, its operator first copies the part into memory that all ranks see. It takes
addresses of such memory. Here they are of PyTorch's symmetric memory; vLLM shares its own by CUDA's handles.
"""

from dataclasses import dataclass

import torch
import torch.distributed
import triton
import triton.language as tl

from warpsmith.lab import peer_libraries

BUFFER_BYTES = 8 << 20
"""Size of vLLM's buffers by default. A part must be smaller: vLLM leaves larger ones to NCCL."""

STEP_BYTES = 16
"""Bytes that vLLM moves at once: a part is a multiple of them."""

WORLDS = (2, 4, 6, 8)
"""Numbers of ranks that vLLM's all-reduce is made for."""

TABLE_BYTES = 8 << 20
"""Size of vLLM's table of buffers' addresses on the GPU."""


@dataclass
class Exchange:
    """vLLM's state of an all-reduce, and the memory that it points to."""

    state: int
    buffer: int
    """Address of this rank's buffer, which parts are copied to."""
    memory: list[torch.Tensor]


_exchanges: list[Exchange] = []


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


def share_memory(size: int, device: torch.device) -> tuple[torch.Tensor, list[int]]:
    """Allocate zeroed bytes that every rank can read and write; return them, and their addresses by rank.

    All ranks must call it in the same order.
    """
    from torch._C._distributed_c10d import _SymmetricMemory

    memory = _SymmetricMemory.empty_strided_p2p((size,), (1,), torch.uint8, device)
    handle = _SymmetricMemory.rendezvous(memory, torch.distributed.group.WORLD.group_name)
    memory.zero_()
    handle.barrier(channel=0)  # nobody raises a flag before all have cleared theirs
    return memory, list(handle.buffer_ptrs)


def open_exchange(device: torch.device) -> Exchange:
    """Allocate what all calls share: vLLM's flags with room for sums, and the buffer that parts are copied to.

    Raises:
        ImportError: vLLM's operators are missing.
    """
    peer_libraries.vllm("_C")  # the library has these operators too
    operators = torch.ops._C_custom_ar
    flags, flag_addresses = share_memory(operators.meta_size() + BUFFER_BYTES, device)
    buffer, addresses = share_memory(BUFFER_BYTES, device)
    table = torch.empty(TABLE_BYTES, dtype=torch.uint8, device=device)
    linked = True  # each GPU with each by NVLink, which these operators are for
    state = operators.init_custom_ar(flag_addresses, table, torch.distributed.get_rank(), linked)
    operators.register_buffer(state, addresses)
    return Exchange(state, addresses[torch.distributed.get_rank()], [flags, buffer, table])


def refuse_part(size: int, world: int) -> None:
    """Raise ValueError for a part, or a number of ranks, that vLLM would leave to NCCL."""
    if world not in WORLDS:
        raise ValueError(f"vLLM's all-reduce is for 2, 4, 6 or 8 ranks, not {world}.")
    if size >= BUFFER_BYTES or size % STEP_BYTES:
        limits = f"less than {BUFFER_BYTES} bytes, in multiples of {STEP_BYTES}"
        raise ValueError(f"vLLM's all-reduce takes parts of {limits}; this one has {size}.")


def run(
    partial: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return this rank's results; `partial` has the shape (1, rows, cols)."""
    rows, cols = residual.shape
    refuse_part(partial.nbytes, torch.distributed.get_world_size())
    if not _exchanges:
        _exchanges.append(open_exchange(partial.device))
    exchange, total = _exchanges[0], torch.empty_like(residual)
    torch.ops._C_custom_ar.all_reduce(exchange.state, partial[0], total, exchange.buffer, BUFFER_BYTES)
    y, hidden = torch.empty_like(residual), torch.empty_like(residual)
    block = triton.next_power_of_2(cols)
    warps = max(1, min(16, block // 512))
    norm_kernel[(rows,)](total, residual, weight, y, hidden, cols, eps, BLOCK=block, num_warps=warps)
    return y, hidden
