"""SASS as `nvdisasm -c -g -gp` prints it: its instructions, and which of them are worth counting."""

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
"""What an instruction is for, by its first word; address arithmetic, moves and predicates are in no group."""

_MEMORY = ("global loads", "global stores", "async copies", "local memory", "shared memory", "atomics")

_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;\s*$")
_ROUTINE = re.compile(r"^\.text\.(\S+):")
_LABEL = re.compile(r"^(\.L_x_\d+|\$[\w$]+):")
_TARGET = re.compile(r"`\((\.L_x_\d+|\$[\w$]+)\)")
_PLACE = re.compile(r'^\s*//## File "([^"]*)", line (\d+)')
_WAIT = 12
_PTX = ".nv_debug_ptx_txt"

Where = Callable[[str, int, int | None], int | None]
"""Line of the solution for a file, a line in it, and a line of the PTX, where they are known."""


def read(listing: str, where: Where) -> list[Routine]:
    """The routines of a listing, without the padding at their ends."""
    return [Routine(name, _code(lines, where)) for name, lines in _routines(listing)]


def kind(instruction: Instruction) -> tuple[str, str] | None:
    """The group, and the instruction as far as it matters there; None: it is not counted."""
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


def memory(instruction: Instruction) -> bool:
    """Whether it reads or writes memory, shared memory included."""
    found = kind(instruction)
    return found is not None and found[0] in _MEMORY


def waits(loop: Sequence[Instruction]) -> bool:
    """Whether a loop only waits for an mbarrier, or for tensor memory to be free."""
    groups = {found[0] for instruction in loop if (found := kind(instruction))}
    asks = any(instruction.opcode.startswith(("SYNCS.PHASECHK", "UTCATOMSWS")) for instruction in loop)
    return asks and len(loop) <= _WAIT and groups <= {"barriers", "tensor memory", "branches"}


def width(opcode: str) -> int:
    """Bits that a memory instruction moves a thread."""
    found = re.search(r"\.[US]?(8|16|64|128|256)(?=\.|$)", opcode)
    return int(found[1]) if found else 32


def _routines(listing: str) -> Iterator[tuple[str, list[str]]]:
    name, lines = "", list[str]()
    for line in listing.splitlines():
        if found := _ROUTINE.match(line):
            if lines:
                yield name, lines
            name, lines = found[1], []
        elif name:
            lines.append(line)
    if lines:
        yield name, lines


def _code(lines: Sequence[str], where: Where) -> list[Instruction]:
    labels = _labels(lines)
    code: list[Instruction] = []
    file, line, ptx = "", 0, None
    for text in lines:
        if place := _PLACE.match(text):
            if place[1] == _PTX:
                ptx = int(place[2])
            else:
                file, line = place[1], int(place[2])
        elif (found := _INSTRUCTION.match(text)) and found[2] != "!PT":  # `@!PT` never runs
            code.append(_instruction(found, where(file, line, ptx), labels))
    return _trimmed(code)


def _instruction(found: re.Match[str], line: int | None, labels: dict[str, int]) -> Instruction:
    address, predicate, opcode, operands = found.groups()
    first = opcode.split(".")[0]
    jumps = first in ("BRA", "JMP", "CALL")
    target = _TARGET.search(operands) if jumps else None
    # `BRA.U UP0, there` and `BRA.DIV R0, there` name their condition before the target; a call comes back.
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
    """Label to the address of the instruction after it."""
    labels: dict[str, int] = {}
    waiting: list[str] = []
    for text in lines:
        if found := _LABEL.match(text):
            waiting.append(found[1])
        elif waiting and (instruction := _INSTRUCTION.match(text)):
            labels.update(dict.fromkeys(waiting, int(instruction[1], 16)))
            waiting.clear()
    return labels


def _trimmed(code: list[Instruction]) -> list[Instruction]:
    """Without the jump to itself and the empty instructions that fill up the last cache line."""
    last = len(code)
    while last and code[last - 1].opcode == "NOP":
        last -= 1
    if last and code[last - 1].target == code[last - 1].address:
        last -= 1
    return code[:last]
