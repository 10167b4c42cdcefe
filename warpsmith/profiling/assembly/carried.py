"""Values that a loop of x86-64 code carries from one iteration to the next: sums in order, and scans."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from warpsmith.profiling.assembly import x86
from warpsmith.profiling.assembly.code import Instruction

_VECTOR = re.compile(r"%[xyz]mm(\d+)")
_ADDRESS = re.compile(r"\(([^)]*)\)")
_REGISTER = re.compile(r"%\w+")
_COMPARES = re.compile(r"v?u?comis[sdh]|v?p?test\w*|cmp\w*|test\w*|j\w+|v?pcmp\w+|prefetch\w*")
_MERGES = re.compile(r"v?(?:cvt\w+|sqrts\w|rsqrt\w*s\w|rcp\w*s\w|rnd\w+s\w|rounds\w|getexps\w)")

Origins = dict[str, int]
"""Location at the loop's start to the scalar operations on the way from there."""


class CarriedValue(NamedTuple):
    """A value that each iteration computes from the one before with scalar arithmetic."""

    operations: int
    """Scalar operations of one iteration, each of which waits for the one before."""
    stored: bool
    """True if each iteration stores it at a new address, as a scan does; a reduction keeps it to the end."""


def find_carried_value(loop: Sequence[Instruction]) -> CarriedValue | None:
    """Find the longest chain of scalar arithmetic from one iteration to the next; None if there is none.

    Branches inside the loop are taken as if all code ran in the order of its addresses.
    """
    moving = frozenset(_written_registers(loop))
    state: dict[str, Origins] = {}
    stored: set[str] = set()
    for instruction in loop:
        if instruction.opcode.startswith("call"):
            state.update({f"mm{number}": {} for number in range(32)})  # no vector register survives a call
        elif not _COMPARES.fullmatch(instruction.opcode):
            _step(instruction, moving, state, stored)
    chains = {location: origins[location] for location, origins in state.items() if origins.get(location)}
    if not chains:
        return None
    longest = max(chains, key=lambda location: (location in stored, chains[location]))
    return CarriedValue(chains[longest], longest in stored)


def reads_new_addresses(loop: Sequence[Instruction]) -> bool:
    """Return whether each iteration reads memory at another address, as a pass over data does."""
    moving = frozenset(_written_registers(loop))
    return any(
        x86.is_x86_memory(instruction)
        and any(_moves(operand, moving) for operand in split_operands(instruction.operands)[:-1])
        for instruction in loop
    )


def split_operands(operands: str) -> list[str]:
    """Split operands in AT&T order, the destination last; masks are left out."""
    plain = re.sub(r"\{[^}]*\}", "", operands)
    return [part.strip() for part in re.split(r",(?![^(]*\))", plain) if part.strip()]


def _step(instruction: Instruction, moving: frozenset[str], state: dict[str, Origins], stored: set[str]) -> None:
    """Follow one instruction: the origins of its destination are those of its sources."""
    opcode, operands = instruction.opcode, split_operands(instruction.operands)
    if not operands:
        return
    *sources, target = operands
    if x86.clears(opcode, sources, target):
        origins: Origins = {}
    else:
        pair = x86.classify_x86(instruction)
        scalar = pair is not None and (
            pair[0] == "scalar arithmetic"
            or (pair[0] in ("multiply-add", "divide and root") and pair[1] == "scalar")
        )
        if _MERGES.fullmatch(opcode) and len(sources) > 1:
            sources = sources[:-1]  # the last source fills the lanes that nobody asked for
        elif (pair is not None and pair[0] == "multiply-add") or (scalar and not opcode.startswith("v")):
            sources = operands
        origins = {}
        for source in sources:
            location = _location_name(source, moving)
            for start, steps in (state.get(location, {location: 0}) if location else {}).items():
                origins[start] = max(origins.get(start, 0), steps + scalar)
    location = _location_name(target, moving)
    if location:
        state[location] = origins
    elif _moves(target, moving):
        stored.update(start for start, steps in origins.items() if steps)


def _location_name(operand: str, moving: frozenset[str]) -> str:
    """Name a vector register, or memory at an address that stays the same in the loop; else an empty text."""
    if match := _VECTOR.fullmatch(operand):
        return f"mm{match[1]}"
    return operand if "(" in operand and not _moves(operand, moving) and "%rip" not in operand else ""


def _moves(operand: str, moving: frozenset[str]) -> bool:
    """Return whether an operand is memory whose address changes in the loop."""
    address = _ADDRESS.search(operand)
    return bool(address) and any(
        register in moving for register in _REGISTER.findall(address[1] if address else "")
    )


def _written_registers(loop: Sequence[Instruction]) -> Iterator[str]:
    """Yield the general registers that the loop's instructions write, by their 64-bit names."""
    for instruction in loop:
        operands = split_operands(instruction.operands)
        if operands and re.fullmatch(r"%r\w+", operands[-1]) and not _COMPARES.fullmatch(instruction.opcode):
            yield operands[-1]
