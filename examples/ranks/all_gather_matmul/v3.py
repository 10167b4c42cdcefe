"""Chunks are pushed by copy engines while the product of the own rows runs; products of the others' rows
follow.

Copy engines take no multiprocessor from the products. Flags are raised and awaited between two products: a
kernel that waits beside a product would take a multiprocessor that the product counts on.

Chunks arrive in two sets in turn. A rank that is at call n has seen its peers' flags of call n - 1, so they
have left call n - 2, whose set it may overwrite. The host counts the calls, so they cannot be captured in a
graph.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed
import triton
import triton.language as tl

FLAG_BYTES = 1024
"""Bytes for flags, one of each rank."""


@dataclass
class Exchange:
    """Memory that all ranks see, for tensors of one shape and type."""

    addresses: torch.Tensor
    """Addresses of all ranks' memory; flags first."""
    chunks: list[torch.Tensor]
    """Every rank's chunks, by set and source."""
    calls: int = 0


_exchanges: dict[Any, Exchange] = {}
_streams: list[torch.cuda.Stream] = []


@triton.jit(do_not_specialize=["value"])
def meet_kernel(addresses, value, TARGET: tl.constexpr, SOURCE: tl.constexpr, RANK: tl.constexpr):
    """Tell one rank that its chunk is there, and wait for another's."""
    raised = (tl.load(addresses + TARGET) + RANK * 4).to(tl.pointer_type(tl.int32))
    tl.atomic_xchg(raised, value, sem="release", scope="sys")
    awaited = (tl.load(addresses + RANK) + SOURCE * 4).to(tl.pointer_type(tl.int32))
    while tl.atomic_add(awaited, 0, sem="acquire", scope="sys") - value < 0:
        pass


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
    """Allocate what calls of a shape share."""
    world = torch.distributed.get_world_size()
    size = 2 * world * shape[0] * shape[1] * dtype.itemsize
    areas, addresses = share_memory(FLAG_BYTES + size, device)
    return Exchange(addresses, [area[FLAG_BYTES:].view(dtype).view(2, world, *shape) for area in areas])


def run(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return this rank's columns of the product."""
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    key = (tuple(x.shape), x.dtype)
    if key not in _exchanges:
        _exchanges[key] = open_exchange(*key, x.device)
    if not _streams:
        _streams.append(torch.cuda.Stream(priority=-1))
    exchange, side, current = _exchanges[key], _streams[0], torch.cuda.current_stream()
    exchange.calls += 1
    turn, pushed = exchange.calls % 2, []
    side.wait_stream(current)
    with torch.cuda.stream(side):
        for step in range(1, world):
            exchange.chunks[(rank + step) % world][turn, rank].copy_(x)
            pushed.append(side.record_event())
    y = x.new_empty(world, x.shape[0], weight.shape[1])
    torch.mm(x, weight, out=y[rank])
    for step in range(1, world):
        target, source = (rank + step) % world, (rank - step) % world
        current.wait_event(pushed[step - 1])
        meet_kernel[(1,)](
            exchange.addresses, exchange.calls, TARGET=target, SOURCE=source, RANK=rank, num_warps=1
        )  # fmt: skip
        torch.mm(exchange.chunks[rank][turn, source], weight, out=y[source])
    return y.view(-1, weight.shape[1])
