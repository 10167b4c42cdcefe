"""Products of the others' rows come first; copy engines push each to its owner while the next product runs.

Copy engines take no multiprocessor from the products. Flags are raised and awaited after the last product, that
of the own rows. The kernel that awaits them adds the parts in float32, in the order of the ranks.

Parts arrive in two sets in turn. A rank that is at call n has seen its peers' flags of call n - 1, so they have
left call n - 2, whose set it may overwrite. The host counts the calls, so they cannot be captured in a graph.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed
import triton
import triton.language as tl

FLAG_BYTES = 1024
"""Bytes for flags, one of each rank."""

BLOCK = 2048
"""Elements that a block adds."""


@dataclass
class Exchange:
    """Memory that all ranks see, for tensors of one shape and type."""

    addresses: torch.Tensor
    """Addresses of all ranks' memory; flags first."""
    parts: list[torch.Tensor]
    """Every rank's parts, by set and source."""
    calls: int = 0


_exchanges: dict[Any, Exchange] = {}
_streams: list[torch.cuda.Stream] = []


@triton.jit(do_not_specialize=["value"])
def add_kernel(
    own_ptr, y_ptr, addresses, set_bytes, value, elements,
    RANK: tl.constexpr, WORLD: tl.constexpr, LANES: tl.constexpr, FLAGS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Wait until all ranks' parts are there, and add them."""
    kind: tl.constexpr = y_ptr.dtype.element_ty
    own = tl.load(addresses + RANK)
    lanes = tl.arange(0, LANES)
    flags = (own + lanes * 4).to(tl.pointer_type(tl.int32))
    others = (lanes < WORLD) & (lanes != RANK)
    behind = 1
    while behind > 0:
        seen = tl.atomic_add(flags, tl.zeros((LANES,), tl.int32), mask=others, sem="acquire", scope="sys")
        behind = tl.max(tl.where(others & (seen - value < 0), 1, 0), 0)
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < elements
    total = tl.zeros((BLOCK,), tl.float32)
    for source in tl.static_range(WORLD):
        if source == RANK:
            part = tl.load(own_ptr + offsets, mask=mask, other=0.0)
        else:
            place = own + FLAGS + set_bytes * ((value & 1) * WORLD + source)
            pushed = tl.multiple_of(place.to(tl.pointer_type(kind)), 16)
            part = tl.load(pushed + offsets, mask=mask, other=0.0)
        total += part.to(tl.float32)
    tl.store(y_ptr + offsets, total.to(kind), mask=mask)


@triton.jit(do_not_specialize=["value"])
def raise_kernel(addresses, value, RANK: tl.constexpr, WORLD: tl.constexpr, LANES: tl.constexpr):
    """Tell all ranks that this one has pushed its parts."""
    lanes = tl.arange(0, LANES)
    flags = tl.load(addresses + lanes, mask=lanes < WORLD, other=0) + RANK * 4
    values = tl.zeros((LANES,), tl.int32) + value
    tl.atomic_xchg(
        flags.to(tl.pointer_type(tl.int32)), values, mask=lanes < WORLD, sem="release", scope="sys"
    )  # fmt: skip


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


def open_exchange(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Exchange:
    """Allocate what calls share whose parts have a shape."""
    world = torch.distributed.get_world_size()
    areas, addresses = share_memory(FLAG_BYTES + 2 * world * _part_bytes(shape, dtype), device)
    parts = [
        area[FLAG_BYTES:].view(2, world, -1)[..., : shape[0] * shape[1] * dtype.itemsize].view(dtype)
        for area in areas
    ]
    return Exchange(addresses, parts)


def _part_bytes(shape: tuple[int, ...], dtype: torch.dtype) -> int:
    return triton.cdiv(shape[0] * shape[1] * dtype.itemsize, 64) * 64


def run(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return this rank's rows of the product."""
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    shape, dtype = (x.shape[0] // world, weight.shape[1]), x.dtype
    if (shape, dtype) not in _exchanges:
        _exchanges[shape, dtype] = open_exchange(shape, dtype, x.device)
    if not _streams:
        _streams.append(torch.cuda.Stream(priority=-1))
    exchange, side, current = _exchanges[shape, dtype], _streams[0], torch.cuda.current_stream()
    exchange.calls += 1
    turn, chunks, products = exchange.calls % 2, x.view(world, shape[0], -1), x.new_empty(world, *shape)
    for step in range(1, world + 1):
        owner = (rank + step) % world
        torch.mm(chunks[owner], weight, out=products[owner])
        if owner != rank:
            side.wait_stream(current)
            with torch.cuda.stream(side):
                exchange.parts[owner][turn, rank].copy_(products[owner].view(-1))
    current.wait_stream(side)
    lanes = triton.next_power_of_2(world)
    raise_kernel[(1,)](exchange.addresses, exchange.calls, RANK=rank, WORLD=world, LANES=lanes, num_warps=1)
    y = x.new_empty(shape)
    add_kernel[(triton.cdiv(y.numel(), BLOCK),)](
        products[rank], y, exchange.addresses, _part_bytes(shape, dtype), exchange.calls, y.numel(),
        RANK=rank, WORLD=world, LANES=lanes, FLAGS=FLAG_BYTES, BLOCK=BLOCK, num_warps=4, num_stages=1,
    )  # fmt: skip
    return y
