"""One kernel exchanges tokens and results through memory that all ranks see; the host reads no sizes.

Each token has a place of its own on every rank, so nobody counts or sorts. Its row is pushed once to each rank
that has one of its experts, whatever their number, and one sum returns from there. Each block waits for the
same block of its peers alone. Sums are formed in the order of the ranks.

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
def count_experts(ids, OWNER: tl.constexpr, OWN: tl.constexpr, TOP_K: tl.constexpr):
    """Return how many of a token's experts a rank has."""
    count = 0
    for k in tl.static_range(TOP_K):
        expert = tl.load(ids + k) - OWNER * OWN
        count += ((expert >= 0) & (expert < OWN)).to(tl.int32)
    return count


@triton.jit
def exchange_kernel(
    x_ptr, experts_ptr, weights_ptr, scale_ptr, y_ptr, addresses, calls_ptr, tokens, hidden, stride,
    RANK: tl.constexpr, WORLD: tl.constexpr, LANES: tl.constexpr, FLAGS: tl.constexpr, OWN: tl.constexpr,
    TOP_K: tl.constexpr, HEAD: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Push this block's tokens; answer the peers' with their experts' sums; add up the answers.

    A token's place holds its experts and their weights in `HEAD` bytes, then its row.
    """
    kind: tl.constexpr = x_ptr.dtype.element_ty
    block, blocks = tl.program_id(0), tl.num_programs(0)
    calls = tl.load(calls_ptr + block)
    own = tl.load(addresses + RANK)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < hidden
    steps = tl.cdiv(tokens - block, blocks)
    slot = stride.to(tl.int64) * tokens
    asked = FLAGS + (calls & 1) * 2 * WORLD * slot
    answered = asked + WORLD * slot
    flag = (RANK * blocks + block) * 4
    second = WORLD * blocks * 4
    for step in range(steps):
        token = (block + step * blocks).to(tl.int64)
        ids = experts_ptr + token * TOP_K
        row = tl.load(x_ptr + token * hidden + offsets, mask=mask)
        for peer in tl.static_range(WORLD):
            if peer != RANK:
                place = tl.load(addresses + peer) + asked + RANK * slot + token * stride
                for k in tl.static_range(TOP_K):
                    tl.store((place + k * 8).to(tl.pointer_type(tl.int32)), tl.load(ids + k))
                    weight = tl.load(weights_ptr + token * TOP_K + k)
                    tl.store((place + k * 8 + 4).to(tl.pointer_type(tl.float32)), weight)
                if count_experts(ids, peer, OWN, TOP_K) > 0:
                    target = tl.multiple_of((place + HEAD).to(tl.pointer_type(kind)), 16)
                    tl.store(target + offsets, row, mask=mask)
    raise_flags(addresses, flag, calls + 1, WORLD, LANES)
    await_flags(own, block * 4, blocks * 4, calls + 1, WORLD, LANES)
    for step in range(steps):
        token = (block + step * blocks).to(tl.int64)
        for source in tl.static_range(WORLD):
            if source != RANK:
                place = own + asked + source * slot + token * stride
                total = tl.zeros((BLOCK,), tl.float32)
                count = 0
                for k in tl.static_range(TOP_K):
                    expert = tl.load((place + k * 8).to(tl.pointer_type(tl.int32))) - RANK * OWN
                    if (expert >= 0) & (expert < OWN):
                        weight = tl.load((place + k * 8 + 4).to(tl.pointer_type(tl.float32)))
                        start = expert.to(tl.int64) * hidden
                        scale = tl.load(scale_ptr + start + offsets, mask=mask, other=0.0)
                        total += weight * scale.to(tl.float32)
                        count += 1
                if count > 0:
                    pushed = tl.multiple_of((place + HEAD).to(tl.pointer_type(kind)), 16)
                    row = tl.load(pushed + offsets, mask=mask, other=0.0).to(tl.float32)
                    answer = tl.load(addresses + source) + answered + RANK * slot + token * stride
                    target = tl.multiple_of(answer.to(tl.pointer_type(kind)), 16)
                    tl.store(target + offsets, (row * total).to(kind), mask=mask)
    raise_flags(addresses, second + flag, calls + 1, WORLD, LANES)
    await_flags(own, second + block * 4, blocks * 4, calls + 1, WORLD, LANES)
    for step in range(steps):
        token = (block + step * blocks).to(tl.int64)
        ids = experts_ptr + token * TOP_K
        total = tl.zeros((BLOCK,), tl.float32)
        for owner in tl.static_range(WORLD):
            if owner == RANK:
                row = tl.load(x_ptr + token * hidden + offsets, mask=mask, other=0.0).to(tl.float32)
                sums = tl.zeros((BLOCK,), tl.float32)
                for k in tl.static_range(TOP_K):
                    expert = tl.load(ids + k) - RANK * OWN
                    if (expert >= 0) & (expert < OWN):
                        start = expert.to(tl.int64) * hidden
                        scale = tl.load(scale_ptr + start + offsets, mask=mask, other=0.0)
                        sums += tl.load(weights_ptr + token * TOP_K + k) * scale.to(tl.float32)
                total += row * sums
            elif count_experts(ids, owner, OWN, TOP_K) > 0:
                place = own + answered + owner * slot + token * stride
                pushed = tl.multiple_of(place.to(tl.pointer_type(kind)), 16)
                total += tl.load(pushed + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + token * hidden + offsets, total.to(kind), mask=mask)
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


def open_exchange(tokens: int, stride: int, device: torch.device) -> Exchange:
    """Allocate what calls of a shape share; `stride` is a token's place in bytes."""
    world = torch.distributed.get_world_size()
    areas, addresses = share_memory(_flag_bytes(world) + 4 * world * tokens * stride, device)
    return Exchange(areas, addresses, torch.zeros(BLOCKS, dtype=torch.int32, device=device))


def _flag_bytes(world: int) -> int:
    return triton.cdiv(2 * world * BLOCKS * 4, TURN) * TURN


def run(x: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return the results of this rank's tokens."""
    world, (tokens, hidden), top_k = torch.distributed.get_world_size(), x.shape, experts.shape[1]
    head = triton.cdiv(8 * top_k, TURN) * TURN
    stride = head + triton.cdiv(hidden * x.itemsize, TURN) * TURN
    if (tokens, stride) not in _exchanges:
        _exchanges[tokens, stride] = open_exchange(tokens, stride, x.device)
    exchange, y = _exchanges[tokens, stride], torch.empty_like(x)
    block = max(32, triton.next_power_of_2(hidden))
    exchange_kernel[(min(tokens, BLOCKS),)](
        x, experts, weights, scale, y, exchange.addresses, exchange.calls, tokens, hidden, stride,
        RANK=torch.distributed.get_rank(), WORLD=world, LANES=triton.next_power_of_2(world),
        FLAGS=_flag_bytes(world), OWN=scale.shape[0], TOP_K=top_k, HEAD=head, BLOCK=block,
        num_warps=max(1, min(16, block // 512)), num_stages=1,
    )  # fmt: skip
    return y
