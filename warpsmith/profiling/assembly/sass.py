"""SASS as `nvdisasm -c -g -gp` prints it: its instructions, and the kinds that are counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from warpsmith.profiling.assembly.code import Instruction, Routine

GROUPS: dict[str, re.Pattern[str]] = {
    group: re.compile(names)
    for group, names in {
        "global loads": r"LDG?",
        "global stores": r"STG?",
        "async copies": r"LDGSTS|LDGDEPBAR|UBLK\w+|UTMA\w+",
        "local memory": r"LDL|STL",
        "shared memory": r"LDS|STS|LDSM|STSM|STAS",
        "tensor memory": r"LDTM|STTM|UTCCP|UTCSHIFT|UTCATOMSWS",
        "tensor cores": r"[HIBDQO]MMA|[HIQB]GMMA|UTC\w*MMA",
        "atomics": r"ATOM[GS]?|REDG?|REDAS|UATOM\w+|URED\w*",
        "barriers": r"BAR|SYNCS|WARPSYNC|MEMBAR|FENCE|DEPBAR|WARPGROUP\w*|UCGABAR_\w+|ARRIVES|UTCBAR|ACQBULK|CCTL",
        "shuffles": r"SHFL|C?REDUX|U?VOTEU?|MATCH",
        "special functions": r"MUFU",
        "conversions": r"U?[FI]2[FI]P?|F2FP|I2FP|FRND|I2I",
        "fp64": r"D(?:ADD|MUL|FMA|SETP|MNMX)",
        "fp32": r"F(?:ADD|MUL|FMA|MNMX)[23]?|FHADD|FHFMA",
        "branches": r"BRA|BRX|BRXU|JMP|JMX|CALL|RET",
    }.items()
}
"""Patterns of an instruction's first word by group; address arithmetic, moves and predicates are in no group."""

_MEMORY = ("global loads", "global stores", "async copies", "local memory", "shared memory", "atomics")

_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;\s*$")
_ROUTINE = re.compile(r"^\.text\.(\S+):")
_LABEL = re.compile(r"^(\.L_x_\d+|\$[\w$]+):")
_TARGET = re.compile(r"`\((\.L_x_\d+|\$[\w$]+)\)")
_PLACE = re.compile(r'^\s*//## File "([^"]*)", line (\d+)')
_MAX_WAIT_LOOP = 12
_PTX = ".nv_debug_ptx_txt"

LineLookup = Callable[[str, int, int | None], int | None]
"""Function from a file, a line in it and a PTX line, each if known, to a source line of the version."""


def parse_sass(listing: str, where: LineLookup) -> list[Routine]:
    """Parse the routines of a listing, without the padding at their ends."""
    return [Routine(name, _code(lines, where)) for name, lines in _routines(listing)]


def classify_sass(instruction: Instruction) -> tuple[str, str] | None:
    """Return group and kind of an instruction; None if it is not counted."""
    first, *rest = instruction.opcode.split(".")
    for group, names in GROUPS.items():
        if names.fullmatch(first):
            match group:
                case "fp32" | "branches":
                    return group, first
                case "special functions" | "shuffles":
                    return group, ".".join([first, *rest[:1]])
                case _:
                    return group, instruction.opcode
    return None


def is_sass_memory(instruction: Instruction) -> bool:
    """Return whether an instruction reads or writes memory, shared memory included."""
    pair = classify_sass(instruction)
    return pair is not None and pair[0] in _MEMORY


def is_sass_wait(loop: Sequence[Instruction]) -> bool:
    """Return whether a loop only waits for an mbarrier, or for free tensor memory."""
    groups = {pair[0] for instruction in loop if (pair := classify_sass(instruction))}
    polls = any(instruction.opcode.startswith(("SYNCS.PHASECHK", "UTCATOMSWS")) for instruction in loop)
    return polls and len(loop) <= _MAX_WAIT_LOOP and groups <= {"barriers", "tensor memory", "branches"}


def access_bits(opcode: str) -> int:
    """Return the bits that a memory instruction moves for each thread."""
    match = re.search(r"\.[US]?(8|16|64|128|256)(?=\.|$)", opcode)
    return int(match[1]) if match else 32


def _routines(listing: str) -> Iterator[tuple[str, list[str]]]:
    name, lines = "", list[str]()
    for line in listing.splitlines():
        if match := _ROUTINE.match(line):
            if lines:
                yield name, lines
            name, lines = match[1], []
        elif name:
            lines.append(line)
    if lines:
        yield name, lines


def _code(lines: Sequence[str], where: LineLookup) -> list[Instruction]:
    labels = _labels(lines)
    code: list[Instruction] = []
    file, line, ptx = "", 0, None
    for text in lines:
        if position := _PLACE.match(text):
            if position[1] == _PTX:
                ptx = int(position[2])
            else:
                file, line = position[1], int(position[2])
        elif (match := _INSTRUCTION.match(text)) and match[2] != "!PT":  # `@!PT` never runs
            code.append(_instruction(match, where(file, line, ptx), labels))
    return _trim_padding(code)


def _instruction(match: re.Match[str], line: int | None, labels: dict[str, int]) -> Instruction:
    address, predicate, opcode, operands = match.groups()
    first = opcode.split(".")[0]
    jumps = first in ("BRA", "JMP", "CALL")
    target = _TARGET.search(operands) if jumps else None
    # `BRA.U UP0, there` and `BRA.DIV R0, there` name their condition before the target; a call returns.
    always = predicate is None and (not jumps or (first != "CALL" and operands.startswith("`")))
    leaves = first in ("BRA", "JMP", "EXIT", "RET", "BRX", "BRXU", "JMX", "KILL")
    return Instruction(
        address=int(address, 16),
        opcode=opcode,
        operands=operands,
        line=line,
        target=labels.get(target[1]) if target else None,
        falls=not (leaves and always),
    )


def _labels(lines: Sequence[str]) -> dict[str, int]:
    """Map each label to the address of the instruction after it."""
    labels: dict[str, int] = {}
    waiting: list[str] = []
    for text in lines:
        if match := _LABEL.match(text):
            waiting.append(match[1])
        elif waiting and (instruction := _INSTRUCTION.match(text)):
            labels.update(dict.fromkeys(waiting, int(instruction[1], 16)))
            waiting.clear()
    return labels


def _trim_padding(code: list[Instruction]) -> list[Instruction]:
    """Remove the jump to itself and the empty instructions that pad the last cache line."""
    last = len(code)
    while last and code[last - 1].opcode == "NOP":
        last -= 1
    if last and code[last - 1].target == code[last - 1].address:
        last -= 1
    return code[:last]
