"""Two-shot: each rank sums its share of the rows and pushes the sums to all peers, in one kernel with the norm.

Whatever the number of ranks, at most twice the part goes out of each. With two ranks nothing is saved over one-
shot. What is pushed is the sum with the residual, in the tensors' type. Every rank norms it itself: to push `y`
as well would take half as much again. Sums are formed in the order of the ranks.

Memory is written in turn in two sets. A rank that is at call n has seen its peers' flags of call n - 1, so they
have left call n - 2, whose set it may overwrite. Flags and the number of calls only grow, and are counted on
the device, so calls may be captured in a graph.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed
import triton
import triton.language as tl

BLOCKS = 132
"""Blocks that wait for peers, at most: all must run at once. Multiprocessors of an H100 and an H200."""

TURN = 64
"""Bytes to which rows in shared memory are aligned."""


@dataclass(frozen=True)
class Exchange:
    """Memory that all ranks see, for tensors of one shape and type."""

    areas: list[torch.Tensor]
    """Memory of each rank, as bytes: flags, then the data."""
    addresses: torch.Tensor
    """Addresses of all ranks' memory."""
    calls: torch.Tensor
    """Calls so far, by block."""


_exchanges: dict[Any, Exchange] = {}


@triton.jit
def raise_flags(addresses, offset, value, WORLD: tl.constexpr, LANES: tl.constexpr):
    """Write `value` at a place in every rank's memory, after all that this block has written."""
    lanes = tl.arange(0, LANES)
    flags = (tl.load(addresses + lanes, mask=lanes < WORLD, other=0) + offset).to(tl.pointer_type(tl.int32))
    tl.debug_barrier()
    tl.atomic_xchg(flags, tl.zeros((LANES,), tl.int32) + value, mask=lanes < WORLD, sem="release", scope="sys")


@triton.jit
def await_flags(own, offset, stride, value, WORLD: tl.constexpr, LANES: tl.constexpr):
    """Wait until this block's flags of all ranks have reached `value`; what they wrote before can then be read."""
    lanes = tl.arange(0, LANES)
    flags = (own + offset + lanes * stride).to(tl.pointer_type(tl.int32))
    zeros = tl.zeros((LANES,), tl.int32)
    behind = 1
    while behind > 0:
        seen = tl.atomic_add(flags, zeros, mask=lanes < WORLD, sem="acquire", scope="sys")
        # By the difference: a peer may be ahead, and counts wrap around.
        behind = tl.max(tl.where((lanes < WORLD) & (seen - value < 0), 1, 0), 0)


@triton.jit
def finish_row(hidden, weight, y_ptr, hidden_ptr, start, offsets, mask, cols, eps):
    """Norm a row and write both results."""
    tl.store(hidden_ptr + start + offsets, hidden.to(hidden_ptr.dtype.element_ty), mask=mask)
    y = hidden * tl.rsqrt(tl.sum(hidden * hidden, 0) / cols + eps) * weight
    tl.store(y_ptr + start + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def two_shot_kernel(
    partial_ptr, residual_ptr, weight_ptr, y_ptr, hidden_ptr, addresses, calls_ptr, rows, cols, stride, eps,
    RANK: tl.constexpr, WORLD: tl.constexpr, LANES: tl.constexpr, FLAGS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Push one row to each owner, reduce the own row of the step before, and norm all rows of the step
    before that.

    Row `WORLD * i + r` belongs to rank r. Owners push sums rounded to the tensors' type, and every rank
    norms these, so that all have the same results.
    """
    kind: tl.constexpr = partial_ptr.dtype.element_ty
    block, blocks = tl.program_id(0), tl.num_programs(0)
    calls = tl.load(calls_ptr + block)
    own = tl.load(addresses + RANK)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < cols
    weight = tl.load(weight_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    share = tl.cdiv(rows, WORLD)
    steps = tl.cdiv(share - block, blocks)
    slot = stride.to(tl.int64) * share
    parts = FLAGS + (calls & 1) * 2 * WORLD * slot
    sums = parts + WORLD * slot
    flag = (RANK * blocks + block) * 4
    second = WORLD * blocks * 4
    for step in range(steps + 2):
        if step < steps:
            local = (block + step * blocks).to(tl.int64)
            for owner in tl.static_range(WORLD):
                if owner != RANK:
                    row = local * WORLD + owner
                    mask = inside & (row < rows)
                    values = tl.load(partial_ptr + row * cols + offsets, mask=mask)
                    place = tl.load(addresses + owner) + parts + RANK * slot + local * stride
                    target = tl.multiple_of(place.to(tl.pointer_type(kind)), 16)
                    tl.store(target + offsets, values, mask=mask)
            raise_flags(addresses, flag, calls * steps + step + 1, WORLD, LANES)
        if (step > 0) & (step <= steps):
            local = (block + (step - 1) * blocks).to(tl.int64)
            row = local * WORLD + RANK
            mask = inside & (row < rows)
            residual = tl.load(residual_ptr + row * cols + offsets, mask=mask, other=0.0)
            await_flags(own, block * 4, blocks * 4, calls * steps + step, WORLD, LANES)
            total = tl.zeros((BLOCK,), tl.float32)
            for source in tl.static_range(WORLD):
                if source == RANK:
                    part = tl.load(partial_ptr + row * cols + offsets, mask=mask, other=0.0)
                else:
                    place = own + parts + source * slot + local * stride
                    pushed = tl.multiple_of(place.to(tl.pointer_type(kind)), 16)
                    part = tl.load(pushed + offsets, mask=mask, other=0.0)
                total += part.to(tl.float32)
            hidden = (total + residual.to(tl.float32)).to(kind)
            for peer in tl.static_range(WORLD):
                if peer != RANK:
                    place = tl.load(addresses + peer) + sums + RANK * slot + local * stride
                    target = tl.multiple_of(place.to(tl.pointer_type(kind)), 16)
                    tl.store(target + offsets, hidden, mask=mask)
            raise_flags(addresses, second + flag, calls * steps + step, WORLD, LANES)
            finish_row(
                hidden.to(tl.float32), weight, y_ptr, hidden_ptr, row * cols, offsets, mask, cols, eps
            )  # fmt: skip
        if step > 1:
            local = (block + (step - 2) * blocks).to(tl.int64)
            await_flags(own, second + block * 4, blocks * 4, calls * steps + step - 1, WORLD, LANES)
            for owner in tl.static_range(WORLD):
                if owner != RANK:
                    row = local * WORLD + owner
                    mask = inside & (row < rows)
                    place = own + sums + owner * slot + local * stride
                    pushed = tl.multiple_of(place.to(tl.pointer_type(kind)), 16)
                    hidden = tl.load(pushed + offsets, mask=mask, other=0.0).to(tl.float32)
                    finish_row(hidden, weight, y_ptr, hidden_ptr, row * cols, offsets, mask, cols, eps)
    tl.store(calls_ptr + block, calls + 1)


def share_memory(size: int, device: torch.device) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Allocate zeroed bytes that every rank can write to; return all ranks', and their addresses.

    All ranks must call it in the same order.
    """
    import torch.distributed._symmetric_memory as symmetric

    memory = symmetric.empty(size, dtype=torch.uint8, device=device)
    handle = symmetric.rendezvous(memory, torch.distributed.group.WORLD)
    memory.zero_()
    handle.barrier(channel=0)  # nobody writes before all have cleared theirs
    begin = memory.data_ptr() - handle.buffer_ptrs[handle.rank]  # of a block that a pool may share out
    areas = [handle.get_buffer(rank, (begin + size,), torch.uint8)[begin:] for rank in range(handle.world_size)]
    areas[handle.rank] = memory
    return areas, torch.tensor([area.data_ptr() for area in areas], device=device)


def open_exchange(rows: int, cols: int, dtype: torch.dtype, device: torch.device) -> Exchange:
    """Allocate what calls of a shape share."""
    world = torch.distributed.get_world_size()
    size = _flag_bytes(world) + 2 * world * 2 * triton.cdiv(rows, world) * _row_bytes(cols, dtype)
    areas, addresses = share_memory(size, device)
    return Exchange(areas, addresses, torch.zeros(BLOCKS, dtype=torch.int32, device=device))


def _row_bytes(cols: int, dtype: torch.dtype) -> int:
    return triton.cdiv(cols * dtype.itemsize, TURN) * TURN


def _flag_bytes(world: int) -> int:
    return triton.cdiv(2 * world * BLOCKS * 4, TURN) * TURN


def run(
    partial: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return this rank's results; `partial` has the shape (1, rows, cols)."""
    rows, cols = residual.shape
    key = (rows, cols, partial.dtype)
    if key not in _exchanges:
        _exchanges[key] = open_exchange(rows, cols, partial.dtype, partial.device)
    exchange, world = _exchanges[key], torch.distributed.get_world_size()
    y, hidden = torch.empty_like(residual), torch.empty_like(residual)
    block = max(32, triton.next_power_of_2(cols))
    two_shot_kernel[(min(triton.cdiv(rows, world), BLOCKS),)](
        partial, residual, weight, y, hidden, exchange.addresses, exchange.calls,
        rows, cols, _row_bytes(cols, partial.dtype), eps,
        RANK=torch.distributed.get_rank(), WORLD=world, LANES=triton.next_power_of_2(world),
        FLAGS=_flag_bytes(world), BLOCK=block, num_warps=max(1, min(16, block // 512)), num_stages=1,
    )  # fmt: skip
    return y, hidden
