"""All-reduce, residual, norm and quantisation in one kernel, in one of three ways by size.

Parts are pushed: a rank writes its part into its peers' memory, which they read locally. Each block waits for
the same block of its peers alone. Sums are formed in the order of the ranks, so that all ranks get the same
result.

- Low latency: each eight bytes carry four of data and the number of the call. No fence, no flag, twice the
  bytes.
- One-shot: parts go to all peers, then a flag. (ranks - 1) times the part.
- Two-shot: shares of rows go to their owners, and finished rows to all peers. At most twice the part.

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

LOW_LATENCY_BYTES = 1 << 18
"""Most bytes that a rank pushes with numbers of calls among them, before they double. To be tuned."""

TWO_SHOT_BYTES = 1 << 20
"""Bytes that two-shot must save a rank, to be worth its second exchange. To be tuned."""

BLOCKS = 132
"""Blocks that wait for peers, at most: all must run at once. Multiprocessors of an H100 and an H200. With two
ranks, one-shot has few enough registers for two on each.
"""

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
    way: str


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
def finish_row(hidden, weight, q_ptr, scales_ptr, hidden_ptr, row, offsets, mask, rows, cols, eps):
    """Norm and quantise a row, and write all results."""
    tl.store(hidden_ptr + row * cols + offsets, hidden.to(hidden_ptr.dtype.element_ty), mask=mask)
    y = hidden * tl.rsqrt(tl.sum(hidden * hidden, 0) / cols + eps) * weight
    scale = tl.maximum(tl.max(tl.abs(y), 0) * (1 / 448.0), 1 / (448.0 * 512))
    q = (y * (1 / scale)).to(q_ptr.dtype.element_ty)
    tl.store(q_ptr + row * cols + offsets, q, mask=mask)
    tl.store(scales_ptr + row, scale, mask=row < rows)


@triton.jit
def one_shot_kernel(
    partial_ptr, residual_ptr, weight_ptr, q_ptr, scales_ptr, hidden_ptr, addresses, calls_ptr,
    rows, cols, stride, eps,
    RANK: tl.constexpr, WORLD: tl.constexpr, LANES: tl.constexpr, FLAGS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Push a row, and finish the row before it, whose parts are on their way meanwhile."""
    kind: tl.constexpr = partial_ptr.dtype.element_ty
    block, blocks = tl.program_id(0), tl.num_programs(0)
    calls = tl.load(calls_ptr + block)
    own = tl.load(addresses + RANK)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < cols
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    steps = tl.cdiv(rows - block, blocks)
    slot = stride.to(tl.int64) * rows
    data = FLAGS + (calls & 1) * WORLD * slot
    for step in range(steps + 1):
        if step < steps:
            row = (block + step * blocks).to(tl.int64)
            values = tl.load(partial_ptr + row * cols + offsets, mask=mask)
            for peer in tl.static_range(WORLD):
                if peer != RANK:
                    place = tl.load(addresses + peer) + data + RANK * slot + row * stride
                    target = tl.multiple_of(place.to(tl.pointer_type(kind)), 16)
                    tl.store(target + offsets, values, mask=mask)
            raise_flags(addresses, (RANK * blocks + block) * 4, calls * steps + step + 1, WORLD, LANES)
        if step > 0:
            row = (block + (step - 1) * blocks).to(tl.int64)
            residual = tl.load(residual_ptr + row * cols + offsets, mask=mask, other=0.0)
            await_flags(own, block * 4, blocks * 4, calls * steps + step, WORLD, LANES)
            total = tl.zeros((BLOCK,), tl.float32)
            for source in tl.static_range(WORLD):
                if source == RANK:
                    part = tl.load(partial_ptr + row * cols + offsets, mask=mask, other=0.0)
                else:
                    place = own + data + source * slot + row * stride
                    pushed = tl.multiple_of(place.to(tl.pointer_type(kind)), 16)
                    part = tl.load(pushed + offsets, mask=mask, other=0.0)
                total += part.to(tl.float32)
            total += residual.to(tl.float32)
            finish_row(total, weight, q_ptr, scales_ptr, hidden_ptr, row, offsets, mask, rows, cols, eps)
    tl.store(calls_ptr + block, calls + 1)


@triton.jit
def two_shot_kernel(
    partial_ptr, residual_ptr, weight_ptr, q_ptr, scales_ptr, hidden_ptr, addresses, calls_ptr,
    rows, cols, stride, eps,
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
                hidden.to(tl.float32), weight, q_ptr, scales_ptr, hidden_ptr, row, offsets, mask, rows, cols, eps
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
                    finish_row(hidden, weight, q_ptr, scales_ptr, hidden_ptr, row, offsets, mask, rows, cols, eps)
    tl.store(calls_ptr + block, calls + 1)


@triton.jit
def split_words(words, KIND: tl.constexpr):
    """Return the lower and the upper of two 16-bit numbers in each word, as float32."""
    low = words.to(tl.int16).to(KIND, bitcast=True).to(tl.float32)
    return low, (words >> 16).to(tl.int16).to(KIND, bitcast=True).to(tl.float32)


@triton.jit
def join_words(low, high, KIND: tl.constexpr):
    """Round two numbers to 16 bits each, and put them into a word."""
    lower = low.to(KIND).to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF
    return lower | (high.to(KIND).to(tl.int16, bitcast=True).to(tl.int32) << 16)


@triton.jit
def as_words(pointer):
    """Return a pointer to words of two numbers; tensors begin at multiples of 16 bytes."""
    return tl.multiple_of(pointer.to(tl.pointer_type(tl.int32)), 16)


@triton.jit
def low_latency_kernel(
    partial_ptr, residual_ptr, weight_ptr, q_ptr, scales_ptr, hidden_ptr, addresses, calls_ptr,
    rows, cols, stride, eps,
    RANK: tl.constexpr, WORLD: tl.constexpr, LANES: tl.constexpr, FLAGS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Push a row of pairs of 16-bit numbers, each with the number of the call, and read the peers' until
    they have it.

    Eight bytes are written at once, so data never arrives without its number. A place is written anew only
    after all ranks have read it, two calls later.
    """
    kind: tl.constexpr = partial_ptr.dtype.element_ty
    row = tl.program_id(0)
    words = cols // 2
    offsets = tl.arange(0, BLOCK // 2)
    mask = offsets < words
    own_words = tl.load(as_words(partial_ptr) + row * words + offsets, mask=mask, other=0)
    calls = tl.load(calls_ptr + row)
    number = calls + 1
    slot = stride.to(tl.int64) * rows
    data = FLAGS + (calls & 1) * WORLD * slot + row * stride
    numbered = (own_words.to(tl.int64) & 0xFFFFFFFF) | (number.to(tl.int64) << 32)
    for peer in tl.static_range(WORLD):
        if peer != RANK:
            place = tl.load(addresses + peer) + data + RANK * slot
            target = tl.multiple_of(place.to(tl.pointer_type(tl.int64)), 16)
            tl.store(target + offsets, numbered, mask=mask)
    res_low, res_high = split_words(
        tl.load(as_words(residual_ptr) + row * words + offsets, mask=mask, other=0), kind
    )  # fmt: skip
    weight_low, weight_high = split_words(tl.load(as_words(weight_ptr) + offsets, mask=mask, other=0), kind)
    own = tl.load(addresses + RANK)
    low = tl.zeros((BLOCK // 2,), tl.float32)
    high = tl.zeros((BLOCK // 2,), tl.float32)
    for source in tl.static_range(WORLD):
        if source == RANK:
            part_low, part_high = split_words(own_words, kind)
        else:
            pushed = tl.multiple_of((own + data + source * slot).to(tl.pointer_type(tl.int64)), 16)
            arrived = tl.load(pushed + offsets, mask=mask, other=0, volatile=True)
            while tl.max(tl.where(mask & ((arrived >> 32).to(tl.int32) != number), 1, 0), 0) > 0:
                arrived = tl.load(pushed + offsets, mask=mask, other=0, volatile=True)
            part_low, part_high = split_words(arrived.to(tl.int32), kind)
        low += part_low
        high += part_high
    low += res_low
    high += res_high
    tl.store(as_words(hidden_ptr) + row * words + offsets, join_words(low, high, kind), mask=mask)
    rstd = tl.rsqrt(tl.sum(low * low + high * high, 0) / cols + eps)
    low *= rstd * weight_low
    high *= rstd * weight_high
    largest = tl.max(tl.maximum(tl.abs(low), tl.abs(high)), 0)
    scale = tl.maximum(largest * (1 / 448.0), 1 / (448.0 * 512))
    q = tl.interleave(low * (1 / scale), high * (1 / scale)).to(q_ptr.dtype.element_ty)
    columns = tl.arange(0, BLOCK)
    tl.store(q_ptr + row * cols + columns, q, mask=columns < cols)
    tl.store(scales_ptr + row, scale)
    tl.store(calls_ptr + row, number)


_KERNELS = {"low latency": low_latency_kernel, "one-shot": one_shot_kernel, "two-shot": two_shot_kernel}


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


def choose_way(rows: int, cols: int, dtype: torch.dtype, world: int) -> str:
    """Return which kernel is used for a size."""
    size = rows * cols * dtype.itemsize
    if dtype.itemsize == 2 and cols % 2 == 0 and rows <= BLOCKS and (world - 1) * size <= LOW_LATENCY_BYTES:
        return "low latency"
    saved = (world - 1) * size - 2 * (world - 1) * size // world
    return "two-shot" if saved > TWO_SHOT_BYTES else "one-shot"


def open_exchange(rows: int, cols: int, dtype: torch.dtype, device: torch.device) -> Exchange:
    """Allocate what calls of a shape share."""
    world = torch.distributed.get_world_size()
    way = choose_way(rows, cols, dtype, world)
    slots = {"low latency": rows, "one-shot": rows, "two-shot": 2 * triton.cdiv(rows, world)}[way]
    size = _flag_bytes(world) + 2 * world * slots * _row_bytes(way, cols, dtype)
    areas, addresses = share_memory(size, device)
    return Exchange(areas, addresses, torch.zeros(2 * BLOCKS, dtype=torch.int32, device=device), way)


def _row_bytes(way: str, cols: int, dtype: torch.dtype) -> int:
    return triton.cdiv(cols * dtype.itemsize * (1 + (way == "low latency")), TURN) * TURN


def _flag_bytes(world: int) -> int:
    return triton.cdiv(2 * world * BLOCKS * 4, TURN) * TURN


def run(
    partial: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return this rank's results; `partial` has the shape (1, rows, cols)."""
    rows, cols = residual.shape
    key = (rows, cols, partial.dtype)
    if key not in _exchanges:
        _exchanges[key] = open_exchange(rows, cols, partial.dtype, partial.device)
    exchange, world = _exchanges[key], torch.distributed.get_world_size()
    y_q, hidden = torch.empty_like(residual, dtype=torch.float8_e4m3fn), torch.empty_like(residual)
    scales = residual.new_empty(rows, dtype=torch.float32)
    block = max(32, triton.next_power_of_2(cols))
    local_rows = triton.cdiv(rows, world) if exchange.way == "two-shot" else rows
    twice = exchange.way == "one-shot" and world == 2
    warps = max(1, min(32, block // 256) if exchange.way == "low latency" else min(16, block // 512))
    _KERNELS[exchange.way][(min(local_rows, 2 * BLOCKS if twice else BLOCKS),)](
        partial, residual, weight, y_q, scales, hidden, exchange.addresses,
        exchange.calls, rows, cols, _row_bytes(exchange.way, cols, partial.dtype), eps,
        RANK=torch.distributed.get_rank(), WORLD=world, LANES=triton.next_power_of_2(world),
        FLAGS=_flag_bytes(world), BLOCK=block, num_warps=warps, num_stages=1,
        maxnreg=64 if twice else None,
    )  # fmt: skip
    return y_q, scales, hidden
