"""Occupancy that a kernel's resources allow: a static model of how a multiprocessor hands out what it has.

AMD's words differ: a warp is a wave, a block a workgroup, a multiprocessor a compute unit, shared memory the LDS.
"""

from __future__ import annotations

from typing import NamedTuple

_PARTITIONS = 4
"""Partitions of a multiprocessor, each with a quarter of the registers, on NVIDIA's and AMD's data-centre GPUs."""

_REGISTER_STEP = 8
"""Registers per thread are handed out in multiples of this."""


class MultiprocessorLimits(NamedTuple):
    """Resources of one multiprocessor."""

    warp_size: int
    """Threads of a warp."""
    warps: int
    """Most warps at a time."""
    blocks: int
    """Most blocks of one warp at a time."""
    larger_blocks: int
    """Most blocks of several warps at a time."""
    registers: int
    """32-bit registers."""
    shared_bytes: int
    """Shared memory, in bytes."""
    block_shared_bytes: int
    """Most shared memory of a block, in bytes."""
    shared_step: int
    """Shared memory is handed out in multiples of this many bytes."""
    block_threads: int = 1024
    """Most threads of a block."""


class Occupancy(NamedTuple):
    """Warps that a multiprocessor holds at a time."""

    warps: int
    """Warps; 0 if not even one block fits."""
    most: int
    """Most warps of the device."""
    limit: str
    """Resource that allows no more: `warps`, `blocks`, `registers`, `shared memory`, `threads of a block`."""


def resident_warps(limits: MultiprocessorLimits, block_warps: int, registers: int, shared_bytes: int) -> Occupancy:
    """Return the occupancy of a kernel.

    Args:
        limits: the multiprocessor.
        block_warps: warps of a block.
        registers: registers of a thread.
        shared_bytes: shared memory of a block, in bytes.
    """
    if block_warps * limits.warp_size > limits.block_threads:
        return Occupancy(0, limits.warps, "threads of a block")
    if shared_bytes > limits.block_shared_bytes:
        return Occupancy(0, limits.warps, "shared memory")
    by_limit = {
        "warps": limits.warps // block_warps,
        "registers": _warps_by_registers(limits, registers) // block_warps,
        "shared memory": _blocks_by_shared_memory(limits, shared_bytes),
        "blocks": limits.blocks if block_warps == 1 else limits.larger_blocks,
    }
    limit = min(by_limit, key=lambda name: by_limit[name])
    return Occupancy(by_limit[limit] * block_warps, limits.warps, limit)


def _warps_by_registers(limits: MultiprocessorLimits, registers: int) -> int:
    of_warp = _round_up(max(registers, 1), _REGISTER_STEP) * limits.warp_size
    return limits.registers // _PARTITIONS // of_warp * _PARTITIONS


def _blocks_by_shared_memory(limits: MultiprocessorLimits, shared_bytes: int) -> int:
    reserved = limits.shared_bytes - limits.block_shared_bytes  # the driver's share of each block
    of_block = _round_up(shared_bytes + reserved, limits.shared_step)
    return limits.shared_bytes // of_block if of_block else limits.blocks


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step
