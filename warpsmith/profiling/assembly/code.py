"""Disassembled machine code: instructions with their source lines, and the loops that they form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

Edges = Sequence[Sequence[int]]
"""Edges between blocks: for each block, the numbers of the blocks that it leads to."""


class Instruction(NamedTuple):
    """One disassembled instruction."""

    address: int
    """Address in the routine's section."""
    opcode: str
    """Opcode as written: `LDG.E.128`, `vmulps`."""
    operands: str
    """Operands as written."""
    line: int | None = None
    """Line of the version's source that it comes from; None if unknown."""
    target: int | None = None
    """Address that it may jump to; None if it does not jump."""
    falls: bool = True
    """True if the next instruction may run after it."""


class Routine(NamedTuple):
    """A stretch of code that is entered at its first instruction."""

    name: str
    """Name by the disassembler."""
    code: list[Instruction]
    """Instructions in the order of their addresses."""


class LoopBody(NamedTuple):
    """The body of a natural loop."""

    code: list[Instruction]
    """Instructions that can run again before the loop is left, in the order of their addresses."""
    line: int | None
    """Source line of the branch back to the start."""
    innermost: bool
    """True if it contains no other loop."""


def find_loops(code: Sequence[Instruction], waits: Callable[[Sequence[Instruction]], bool]) -> list[LoopBody]:
    """Find the natural loops: an edge back to a block that dominates it, and the blocks between.

    Loops that only wait, according to `waits`, are left out, because they would hide the loop that does the work.
    """
    blocks = list(_blocks(code))
    successors = _successors(code, blocks)
    predecessors = _predecessors(successors)
    dominators = _dominators(predecessors, _entries(successors, predecessors))
    bodies: dict[int, set[int]] = {}
    back_edges: dict[int, int] = {}
    for block, targets in enumerate(successors):
        for header in targets:
            if dominators[block] >> header & 1:
                bodies.setdefault(header, {header}).update(_loop_blocks(header, block, predecessors))
                back_edges[header] = block
    code_by_header = {
        header: [code[i] for block in sorted(body) for i in blocks[block]] for header, body in bodies.items()
    }
    working = {header: body for header, body in sorted(bodies.items()) if not waits(code_by_header[header])}
    return [
        LoopBody(
            code=code_by_header[header],
            line=_line(code, blocks[back_edges[header]]),
            innermost=not any(other < body for other in working.values()),
        )
        for header, body in working.items()
    ]


def _blocks(code: Sequence[Instruction]) -> Iterator[range]:
    """Yield basic blocks: only the first instruction can be a jump target, and only the last can leave."""
    targets = {instruction.target for instruction in code}
    starts = [
        index
        for index, instruction in enumerate(code)
        if index == 0
        or instruction.address in targets
        or code[index - 1].target is not None
        or not code[index - 1].falls
    ]
    return (range(first, last) for first, last in pairwise([*starts, len(code)]))


def _successors(code: Sequence[Instruction], blocks: Sequence[range]) -> list[list[int]]:
    at = {code[block[0]].address: number for number, block in enumerate(blocks)}
    successors = []
    for number, block in enumerate(blocks):
        last = code[block[-1]]
        jump = [at[last.target]] if last.target in at else []
        successors.append([*jump, *([number + 1] if last.falls and number + 1 < len(blocks) else [])])
    return successors


def _predecessors(successors: Edges) -> list[list[int]]:
    predecessors: list[list[int]] = [[] for _ in successors]
    for block, targets in enumerate(successors):
        for target in targets:
            predecessors[target].append(block)
    return predecessors


def _entries(successors: Edges, predecessors: Edges) -> set[int]:
    """Return the first block and blocks that no known jump leads to: subroutines, handlers, jump tables."""
    entries: set[int] = set()
    visited: set[int] = set()
    for block in sorted(range(len(successors)), key=lambda block: (block > 0, bool(predecessors[block]), block)):
        if block in visited:
            continue
        entries.add(block)
        visited |= _reachable(block, successors, visited)
    return entries


def _dominators(predecessors: Edges, entries: set[int]) -> list[int]:
    """Return for each block the blocks that every path to it passes, as bits."""
    everything = (1 << len(predecessors)) - 1
    dominators = [1 << block if block in entries else everything for block in range(len(predecessors))]
    changed = True
    while changed:
        changed = False
        for block, sources in enumerate(predecessors):
            if block not in entries:
                common = everything
                for source in sources:
                    common &= dominators[source]
                common |= 1 << block
                changed = changed or common != dominators[block]
                dominators[block] = common
    return dominators


def _loop_blocks(header: int, back: int, predecessors: Edges) -> set[int]:
    """Return the blocks that reach `back` without passing `header`."""
    return _reachable(back, predecessors, {header}) if back != header else {header}


def _reachable(start: int, edges: Edges, closed: set[int]) -> set[int]:
    """Return the blocks that the edges reach from `start`, including it, without entering `closed`."""
    reached, waiting = {start}, [start]
    while waiting:
        new = set(edges[waiting.pop()]) - reached - closed
        reached |= new
        waiting.extend(new)
    return reached


def _line(code: Sequence[Instruction], block: range) -> int | None:
    """Return the line of the branch at a block's end, else of the nearest instruction above it that has one."""
    return next((code[index].line for index in reversed(block) if code[index].line is not None), None)
