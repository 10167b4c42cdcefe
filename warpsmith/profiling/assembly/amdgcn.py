"""AMD's assembly as the compiler states it: its instructions, the kinds that are counted, and waits for memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from warpsmith.profiling.assembly.code import Instruction, Routine
from warpsmith.profiling.assembly.models import VectorOperation

GROUPS: dict[str, re.Pattern[str]] = {
    group: re.compile(names)
    for group, names in {
        "atomics": r"(?:global|buffer|flat)_atomic_\w+|ds_(?:add|sub|inc|dec|min|max|and|or|xor|cmpst)_\w+",
        "copies to LDS": r"global_load_lds_\w+",
        "global loads": r"(?:global|buffer|flat)_load_\w+",
        "global stores": r"(?:global|buffer|flat)_store_\w+",
        "scratch": r"scratch_(?:load|store)_\w+",
        "lane moves": r"ds_(?:bpermute|permute|swizzle)_\w+|v_(?:readlane|readfirstlane|writelane)_\w+"
        r"|v_permlane\w+|v_\w+_dpp",
        "LDS": r"ds_\w+",
        "scalar loads": r"s_(?:buffer_)?load_\w+",
        "matrix cores": r"v_s?mf(?:ma|mac)_\w+|v_wmma_\w+",
        "accumulator moves": r"v_accvgpr_\w+",
        "barriers": r"s_barrier\w*",
        "waits": r"s_waitcnt\w*",
        "special functions": r"v_(?:exp|log|rcp|rsq|sqrt|sin|cos)_\w+",
        "conversions": r"v_cvt_\w+",
        "fp64": r"v_\w+_f64(?:_\w+)?",
        "fp32": r"v_(?:pk_)?(?:add|sub|subrev|mul|fma|fmac|mad|mac|min|max|max3|min3|med3)_f(?:32|16)(?:_\w+)?",
        "branches": r"s_(?:branch|cbranch_\w+|setpc_\w+|swappc_\w+|call_\w+)",
    }.items()
}
"""Patterns of an opcode by group, the first that matches; address arithmetic and moves are in no group."""

WIDTHS = {"byte": 8, "ubyte": 8, "sbyte": 8, "short": 16, "ushort": 16, "sshort": 16, "d16": 16}
"""Bits of an access by a word of its opcode."""

_MEMORY = ("global loads", "global stores", "copies to LDS", "scratch", "LDS", "scalar loads", "atomics")

_ROUTINE = re.compile(r"^([\w.$]+):\s+; @")
_LABEL = re.compile(r"^(\.L\w+):")
_INSTRUCTION = re.compile(r"^\t([a-z]\w*)(?:\s+(.*))?$")
_SIGNED_LANES = re.compile(r"_(?:e32|e64|sdwa|dpp)$")
_ENDS = ("s_endpgm", "s_setpc_b64", "s_branch")
_VECTOR_WAIT = re.compile(r"vmcnt\((\d+)\)")
_VECTOR_OPERATIONS: dict[VectorOperation, re.Pattern[str]] = {
    "load": re.compile(r"(?:global|buffer|flat)_load_\w+"),
    "store": re.compile(r"(?:global|buffer|flat)_store_\w+|buffer_wbl2\w*"),
    "atomic": re.compile(r"(?:global|buffer|flat)_atomic_\w+"),
    "scratch": re.compile(r"scratch_(?:load|store)_\w+"),
}
"""Opcodes that the counter of vector memory operations, vmcnt, counts on gfx9; later chips count stores apart."""


class MemoryWait(NamedTuple):
    """A wait for loads from memory, until at most `pending` vector memory operations are in flight."""

    address: int
    """Address of the wait."""
    line: int | None
    """Source line of the wait."""
    pending: int
    """Operations that may still be in flight; 0 waits for all."""
    distance: int
    """Instructions since the youngest operation that it waits for was issued."""
    youngest: VectorOperation
    """Kind of that operation."""


def parse_amdgcn(text: str, lines: Mapping[int, int]) -> list[Routine]:
    """Parse the kernels and functions of an assembly.

    Args:
        text: what the compiler states.
        lines: source line by line of the text, from 1.
    """
    return [Routine(name, _code(rows, lines)) for name, rows in _routines(text)]


def classify_amdgcn(instruction: Instruction) -> tuple[str, str] | None:
    """Return group and kind of an instruction; None if it is not counted."""
    opcode = instruction.opcode
    for group, names in GROUPS.items():
        if names.fullmatch(opcode):
            if group == "global loads" and re.search(r"\blds\b", instruction.operands):
                return "copies to LDS", opcode
            if group == "waits":
                return group, instruction.operands
            return group, _SIGNED_LANES.sub("", opcode) if group != "lane moves" else opcode
    return None


def is_amdgcn_memory(instruction: Instruction) -> bool:
    """Return whether an instruction reads or writes memory, LDS included."""
    pair = classify_amdgcn(instruction)
    return pair is not None and pair[0] in _MEMORY


def is_amdgcn_wait(loop: Sequence[Instruction]) -> bool:
    """Return whether a loop only polls memory until another block has written it: it sleeps, or it invalidates the
    cache at each turn, and computes nothing."""
    polls = any(instruction.opcode.startswith(("s_sleep", "buffer_inv")) for instruction in loop)
    groups = {pair[0] for instruction in loop if (pair := classify_amdgcn(instruction))}
    return polls and not groups & {
        "matrix cores",
        "fp32",
        "fp64",
        "special functions",
        "conversions",
        "global stores",
    }


def amdgcn_access_bits(opcode: str) -> int:
    """Return the bits that a memory instruction moves for each lane."""
    if match := re.search(r"dwordx(\d)|_b(\d+)(?=_|$)", opcode):
        return 32 * int(match[1]) if match[1] else int(match[2])
    return next((bits for word, bits in WIDTHS.items() if word in opcode.split("_")), 32)


def memory_waits(code: Sequence[Instruction]) -> Iterator[MemoryWait]:
    """Yield the waits for loads from memory, in the order of the code.

    Operations end in the order in which they were issued, so a wait leaves the N youngest in flight. Waits for
    stores, atomics and scratch memory alone, and for what the code before issued, are left out.
    """
    in_flight: list[tuple[int, VectorOperation]] = []
    for index, instruction in enumerate(code):
        if kind := _vector_operation(instruction.opcode):
            in_flight.append((index, kind))
        elif instruction.opcode == "s_waitcnt" and (match := _VECTOR_WAIT.search(instruction.operands)):
            pending = int(match[1])
            ended = max(0, len(in_flight) - pending)
            awaited, in_flight = in_flight[:ended], in_flight[ended:]
            if any(kind == "load" for _, kind in awaited):
                issued, youngest = awaited[-1]
                yield MemoryWait(instruction.address, instruction.line, pending, index - issued - 1, youngest)


def _vector_operation(opcode: str) -> VectorOperation | None:
    return next((kind for kind, names in _VECTOR_OPERATIONS.items() if names.fullmatch(opcode)), None)


def _routines(text: str) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Yield the name of each routine with its numbered lines, up to its end mark."""
    name, rows = "", list[tuple[int, str]]()
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _ROUTINE.match(line):
            name, rows = match[1], []
        elif name and line.startswith(".Lfunc_end"):
            yield name, rows
            name = ""
        elif name:
            rows.append((number, line))


def _code(rows: Sequence[tuple[int, str]], lines: Mapping[int, int]) -> list[Instruction]:
    """Return the instructions; their addresses are their numbers, since the text states none."""
    places: dict[str, int] = {}
    raw: list[tuple[int, str, str]] = []
    for number, text in rows:
        if label := _LABEL.match(text):
            places[label[1]] = len(raw)
        elif match := _INSTRUCTION.match(text.split(";")[0].rstrip()):
            raw.append((number, match[1], match[2] or ""))
        if ".section" in text and ".rodata" in text:
            break
    return [
        Instruction(
            address=address,
            opcode=opcode,
            operands=operands,
            line=lines.get(number),
            target=places.get(operands) if opcode.startswith(("s_branch", "s_cbranch")) else None,
            falls=opcode not in _ENDS,
        )
        for address, (number, opcode, operands) in enumerate(raw)
    ]
