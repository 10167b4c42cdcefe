"""Machine code as a disassembler lists it: instructions with their lines of the source, and their loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

Edges = Sequence[Sequence[int]]
"""Between blocks, by number."""


class Instruction(NamedTuple):
    """One instruction."""

    address: int
    """Its place in the routine's section."""
    opcode: str
    """As it is written: `LDG.E.128`, `vmulps`."""
    operands: str
    """As they are written."""
    line: int | None = None
    """Line of the solution that it comes from; None where nothing says so."""
    target: int | None = None
    """Where it may jump to."""
    falls: bool = True
    """Whether the next instruction may follow it."""


class Routine(NamedTuple):
    """A stretch of code that is entered at its first instruction."""

    name: str
    """The disassembler's name for it."""
    code: list[Instruction]
    """In the order of addresses."""


class Body(NamedTuple):
    """A natural loop."""

    code: list[Instruction]
    """What can run again before it is left, in the order of addresses."""
    line: int | None
    """Line of the branch back."""
    innermost: bool
    """Whether no other loop lies in it."""


def loops(code: Sequence[Instruction], waits: Callable[[Sequence[Instruction]], bool]) -> list[Body]:
    """The natural loops: an edge back to a block that every path from the entry passes, and what lies between.

    Those that only wait, as `waits` says of their code, are left out: they hide the loop that does the work.
    """
    blocks = list(_blocks(code))
    after = _successors(code, blocks)
    before = _turned(after)
    above = _dominators(before, _entries(after, before))
    bodies: dict[int, set[int]] = {}
    backs: dict[int, int] = {}
    for block, following in enumerate(after):
        for header in following:
            if above[block] >> header & 1:
                bodies.setdefault(header, {header}).update(_between(header, block, before))
                backs[header] = block
    held = {header: [code[i] for block in sorted(body) for i in blocks[block]] for header, body in bodies.items()}
    working = {header: body for header, body in sorted(bodies.items()) if not waits(held[header])}
    return [
        Body(
            code=held[header],
            line=_line(code, blocks[backs[header]]),
            innermost=not any(other < body for other in working.values()),
        )
        for header, body in working.items()
    ]


def _blocks(code: Sequence[Instruction]) -> Iterator[range]:
    """Stretches that only their first instruction can be jumped to, and only their last can leave."""
    targets = {instruction.target for instruction in code}
    starts = [
        place
        for place, instruction in enumerate(code)
        if place == 0
        or instruction.address in targets
        or code[place - 1].target is not None
        or not code[place - 1].falls
    ]
    return (range(first, last) for first, last in pairwise([*starts, len(code)]))


def _successors(code: Sequence[Instruction], blocks: Sequence[range]) -> list[list[int]]:
    at = {code[block[0]].address: number for number, block in enumerate(blocks)}
    found = []
    for number, block in enumerate(blocks):
        last = code[block[-1]]
        jump = [at[last.target]] if last.target in at else []
        found.append([*jump, *([number + 1] if last.falls and number + 1 < len(blocks) else [])])
    return found


def _turned(after: Edges) -> list[list[int]]:
    before: list[list[int]] = [[] for _ in after]
    for block, following in enumerate(after):
        for target in following:
            before[target].append(block)
    return before


def _entries(after: Edges, before: Edges) -> set[int]:
    """The first block, and what no jump that is known leads to: subroutines, handlers, tables of jumps."""
    entries: set[int] = set()
    seen: set[int] = set()
    for block in sorted(range(len(after)), key=lambda block: (block > 0, bool(before[block]), block)):
        if block in seen:
            continue
        entries.add(block)
        seen |= _reach(block, after, seen)
    return entries


def _dominators(before: Edges, entries: set[int]) -> list[int]:
    """For each block, as bits, the blocks that every path to it passes."""
    everything = (1 << len(before)) - 1
    above = [1 << block if block in entries else everything for block in range(len(before))]
    changed = True
    while changed:
        changed = False
        for block, sources in enumerate(before):
            if block not in entries:
                met = everything
                for source in sources:
                    met &= above[source]
                met |= 1 << block
                changed = changed or met != above[block]
                above[block] = met
    return above


def _between(header: int, back: int, before: Edges) -> set[int]:
    """The blocks that reach `back` without passing `header`."""
    return _reach(back, before, {header}) if back != header else {header}


def _reach(start: int, edges: Edges, closed: set[int]) -> set[int]:
    """What the edges lead to from `start`, itself included, without entering `closed`."""
    found, waiting = {start}, [start]
    while waiting:
        new = set(edges[waiting.pop()]) - found - closed
        found |= new
        waiting.extend(new)
    return found


def _line(code: Sequence[Instruction], block: range) -> int | None:
    """Of the branch at a block's end; else of the nearest instruction above it that has one."""
    return next((code[place].line for place in reversed(block) if code[place].line is not None), None)
