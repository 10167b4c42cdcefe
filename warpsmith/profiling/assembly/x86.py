"""x86-64 code as `objdump -d -r -l --inlines` prints it: its instructions, and the kinds that are counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from warpsmith.profiling.assembly.code import Instruction, Routine

GROUPS = (
    "matrix tiles", "multiply-add", "packed arithmetic", "scalar arithmetic", "divide and root", "packed integer",
    "vector load moves", "vector store moves", "scalar load moves", "scalar store moves",
    "streaming stores", "gathers and scatters", "lane moves", "conversions", "atomics", "calls", "branches",
)  # fmt: skip
"""Groups that are counted. Arithmetic on a memory operand
is arithmetic; addresses and integers are in no group."""

_ROUTINE = re.compile(r"^[0-9a-f]{8,} <(.+)>:$")
_INSTRUCTION = re.compile(r"^\s+([0-9a-f]+):\t(\S.*?)\s*$")
_RELOCATION = re.compile(r"^\s+[0-9a-f]+: R_\S+\s+(.+?)(?:[-+]0x[0-9a-f]+)?$")
_PLACE = re.compile(r"^(inlined by )?(/?[^\s:][^:]*):(\d+)(?: \(.*\))?$")
_PREFIX = re.compile(r"^(?:(?:lock|rep\w*|bnd|notrack|data16|cs|ds|xacquire|xrelease)\s+)+")
_NAME = re.compile(r"^[0-9a-f]+ <(.+?)(?:\+0x[0-9a-f]+)?>$")
_NOP = re.compile(r"nop\w*|xchg +%ax,%ax")
_JUMP = re.compile(r"j\w+")

_FLOAT = r"(?P<kind>[ps])[sdh]"
_FUSED = re.compile(rf"v?fn?m(?:add|sub|addsub|subadd)\d*{_FLOAT}")
_ROOT = re.compile(rf"v?(?:div|sqrt|rcp(?:14|28)?|rsqrt(?:14|28)?){_FLOAT}")
_ARITHMETIC = re.compile(
    rf"v?(?:add|sub|mul|max|min|addsub|hadd|hsub|dp|dpbf16|cmp\w*?|u?comi|round|rndscale|exp2|scalef|range|reduce)"
    rf"{_FLOAT}"
)
_MOVE = re.compile(r"v?(?:mov[au]p[sd]|movdq[au](?:8|16|32|64)?|lddqu|p?broadcast\w+|pmov[sz]x\w+)")
_SCALAR_MOVE = re.compile(r"v?mov(?:s[sdh]|[dqw])")
_STREAM = re.compile(r"v?movnt\w+")
_INDEXED = re.compile(r"v?p?(?:gather|scatter)\w+")
_LANES = re.compile(
    r"v?(?:p?shuf\w*|p?perm\w*|p?unpck\w*|p?blend\w*|p?broadcast\w*|p?extract\w*|p?insert\w*|p?align\w*"
    r"|mov(?:hl|lh|ddup|shdup|sldup)\w*|pmov[sz]x\w+|p?pack\w*|pslldq|psrldq)"
)
_CONVERSION = re.compile(r"v?cvt\w+")
_INTEGER = re.compile(r"v?p(?:add|sub|mul|madd|and|or|xor|max|min|cmp|s[lr][la]|abs|avg|hadd|hsub|ternlog)\w*")
_TILE = re.compile(r"tdp\w+|tile(?:load|store)\w*")
_CLEAR = re.compile(r"v?p?(?:xor|sub|andn)\w*")
_STORE = re.compile(r"\)(?:\{%k\d\})?$")
_ORDER = (
    (_TILE, "matrix tiles"),
    (_STREAM, "streaming stores"),
    (_INDEXED, "gathers and scatters"),
    (_FUSED, "multiply-add"),
    (_ROOT, "divide and root"),
    (_CONVERSION, "conversions"),
    (_INTEGER, "packed integer"),
)

InlineLineLookup = Callable[[Sequence[tuple[str, int]]], int | None]
"""Function from a source position and its chain of callers, innermost first, to a line of the version."""


def parse_x86(listing: str, where: InlineLineLookup) -> list[Routine]:
    """Parse the routines of a listing that contain code."""
    return [Routine(name, code) for name, code in _routines(listing, where) if code]


def classify_x86(instruction: Instruction) -> tuple[str, str] | None:
    """Return group and kind of an instruction, its width or its name; None if it is not counted."""
    opcode, operands = instruction.opcode, instruction.operands
    size = _size(operands)
    if opcode.startswith("call"):
        return "calls", operands
    *sources, target = operands.split(",")
    if clears(opcode, sources, target):
        return None
    if _JUMP.fullmatch(opcode):
        return "branches", "jmp" if opcode == "jmp" else "conditional"
    if opcode.startswith("lock ") or (opcode.startswith("xchg") and "(" in operands):
        return "atomics", opcode
    for names, group in _ORDER:
        if match := names.fullmatch(opcode):
            scalar = match.groupdict().get("kind") == "s"
            return group, opcode if group in ("conversions", "streaming stores") else "scalar" if scalar else size
    if match := _ARITHMETIC.fullmatch(opcode):
        return ("scalar arithmetic", opcode) if match["kind"] == "s" else ("packed arithmetic", size)
    return _moves(opcode, operands, size)


def clears(opcode: str, sources: Sequence[str], target: str) -> bool:
    """Return whether an instruction is the idiom that sets a register to zero: its operands are all the same."""
    return bool(_CLEAR.fullmatch(opcode)) and {*sources, target} == {target}


def is_x86_memory(instruction: Instruction) -> bool:
    """Return whether an instruction reads or writes memory."""
    return "(" in instruction.operands and not instruction.opcode.startswith(("lea", "call", "prefetch", "j"))


def is_x86_wait(loop: Sequence[Instruction]) -> bool:
    """Return whether a loop only waits for another thread."""
    return any(instruction.opcode == "pause" for instruction in loop)


def _moves(opcode: str, operands: str, size: str) -> tuple[str, str] | None:
    side = "store" if _STORE.search(operands) else "load" if "(" in operands.rpartition(",%")[0] else ""
    if side and "mm" in operands:
        if _SCALAR_MOVE.fullmatch(opcode):
            return f"scalar {side} moves", opcode
        if _MOVE.fullmatch(opcode):
            return f"vector {side} moves", size
    return ("lane moves", opcode) if _LANES.fullmatch(opcode) else None


def _size(operands: str) -> str:
    """Return the widest vector register in the operands."""
    return next((name for name in ("zmm", "ymm", "xmm") if f"%{name}" in operands), "none")


def _routines(listing: str, where: InlineLineLookup) -> Iterator[tuple[str, list[Instruction]]]:
    name, code = "", list[Instruction]()
    chain: list[tuple[str, int]] = []
    fresh = True
    for text in listing.splitlines():
        if match := _ROUTINE.match(text):
            yield name, code
            name, code, chain = match[1], [], []
        elif match := _RELOCATION.match(text):
            if code and code[-1].opcode.startswith(("call", "jmp")):
                code[-1] = code[-1]._replace(operands=match[1].removesuffix("@plt"), target=None)
        elif match := _INSTRUCTION.match(text):
            fresh = True
            if not _NOP.match(_PREFIX.sub("", match[2])):
                code.append(_instruction(int(match[1], 16), match[2], where(chain)))
        elif match := _PLACE.match(text):
            # Callers may be repeated at an instruction without the position itself if that has not changed.
            above = (chain[:1] if fresh else chain) if match[1] else []
            chain = [*above, (match[2], int(match[3]))]
            fresh = False
    yield name, code


def _instruction(address: int, text: str, line: int | None) -> Instruction:
    text = text.split("#")[0].rstrip()
    plain = _PREFIX.sub("", text)
    opcode, _, operands = plain.partition(" ")
    operands = operands.strip()
    target = re.match(r"([0-9a-f]+) <", operands) if _JUMP.fullmatch(opcode) else None
    if opcode.startswith("call") and (match := _NAME.match(operands)):
        operands = match[1]
    if text.startswith("lock "):
        opcode = f"lock {opcode}"
    return Instruction(
        address=address,
        opcode=opcode,
        operands=operands,
        line=line,
        target=int(target[1], 16) if target else None,
        falls=not re.match(r"(?:jmp|ret|ud2|hlt)", opcode),
    )
