"""Assembly: what the compiler made of a version's kernels, counted by kind, by loop and by line of the source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from warpsmith.core.base import Model, Sha256
from warpsmith.core.evaluation import Resources


class Count(Model):
    """How often one kind of instruction stands in the code; a loop's body counts once."""

    group: str
    """What it is for: `global loads`, `barriers`, `packed arithmetic`."""
    kind: str
    """The instruction as the disassembler writes it, or its width where many do the same: `LDG.E.128`, `ymm`."""
    count: int = Field(ge=1)
    """Instructions."""


class Loop(Model):
    """A loop: the instructions that can run again before it is left."""

    line: int | None = None
    """Line of the source that its branch back comes from; null where the compiler does not say."""
    innermost: bool
    """Whether no other loop lies in it."""
    instructions: int = Field(ge=1)
    """Instructions of its body, those of loops in it included."""
    counts: tuple[Count, ...]
    """Its body by kind."""


class Line(Model):
    """One line of the source, and what came of it."""

    line: int = Field(ge=1)
    """Its number."""
    text: str
    """The line, without indentation."""
    instructions: int = Field(ge=1)
    """Instructions that come from it, or from library code that was inlined there."""
    memory: int = Field(ge=0)
    """Those of them that access memory, shared memory and the stack included."""


class Kernel(Model):
    """One compiled kernel; on a CPU all code of the file."""

    name: str
    """Function name."""
    workloads: tuple[str, ...]
    """The workloads that launch it, of those looked at."""
    variant: str
    """What it was compiled for: `/16` after a type stands for a known multiple of 16."""
    isa: Literal["sass", "x86"]
    """What the assembly is written in."""
    assembly: str
    """File of the disassembly, relative to the project where it lies in it."""
    ptx: str | None = None
    """File of the PTX, where there is one."""
    resources: Resources
    """The compiler's report."""
    instructions: int = Field(ge=1)
    """Instructions, padding left out."""
    counts: tuple[Count, ...]
    """Instructions by kind: what costs, not every address computation."""
    loops: tuple[Loop, ...]
    """Its loops in the order of the code; those that only wait are left out."""
    lines: tuple[Line, ...]
    """The ten lines with the most instructions, those with the most memory accesses among them."""

    def total(self, *groups: str) -> int:
        """Instructions of these groups."""
        return sum(count.count for count in self.counts if count.group in groups)


class Notice(Model):
    """Something in the counts that deserves a look."""

    kernels: tuple[int, ...] = Field(min_length=1)
    """Places in `Assembly.kernels`, from 1."""
    text: str
    """What it is, and what usually causes it."""
    entry: str
    """The knowledge entry that says more."""


class Assembly(Model):
    """The assembly of one version for one architecture."""

    op: str
    """The operator."""
    version: str
    """`triton/v3`."""
    solution_sha256: Sha256
    """Hash of the file that was compiled."""
    arch: str
    """What it was compiled for: `sm_90a`, `native`."""
    workloads: tuple[str, ...]
    """The workloads that were looked at."""
    folder: str
    """Where the assembly lies, relative to the project where it lies in it."""
    kernels: tuple[Kernel, ...] = Field(min_length=1)
    """Every kernel and specialisation that these workloads launch, in the order of the first launch."""
    notices: tuple[Notice, ...]
    """What deserves a look."""


class Row(Model):
    """One figure of two versions."""

    group: str
    """Group of the count, `in innermost loops`, or `resources`."""
    kind: str
    """Kind of the count, group of what the loops hold, or name of the figure."""
    before: int
    """In the other version."""
    after: int
    """In this version."""


class Pair(Model):
    """The kernels of two versions that run at the same workloads."""

    workloads: tuple[str, ...]
    """These workloads."""
    before: tuple[int, ...]
    """The other version's kernels: places from 1."""
    after: tuple[int, ...]
    """This version's kernels."""
    rows: tuple[Row, ...]
    """What differs; the kernels of one side are added up, of registers and shared memory the largest counts."""


class AssemblyDiff(Model):
    """Two versions compared."""

    before: Assembly
    """The other version."""
    after: Assembly
    """This version."""
    pairs: tuple[Pair, ...]
    """One for each pair of sets of kernels that serve the same workloads."""


def counts(kinds: Iterable[tuple[str, str]], groups: Iterable[str]) -> tuple[Count, ...]:
    """Count pairs of group and kind: groups in the order given, the most frequent kind of each first."""
    from collections import Counter

    found = Counter(kinds)
    order = {group: place for place, group in enumerate(groups)}
    ranked = sorted(found.items(), key=lambda item: (order[item[0][0]], -item[1], item[0][1]))
    return tuple(Count(group=group, kind=kind, count=count) for (group, kind), count in ranked)
