"""Models of a version's assembly: instructions counted by kind, by loop and by source line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from warpsmith.core.arithmetic.occupancy import MultiprocessorLimits, Occupancy, resident_warps
from warpsmith.core.base import Model, Sha256
from warpsmith.core.evaluation import Resources
from warpsmith.languages.base import Isa


class Count(Model):
    """Number of instructions of one kind in the code; a loop's body counts once."""

    group: str
    """Purpose of the instruction: `global loads`, `barriers`, `packed arithmetic`."""
    kind: str
    """Instruction as the disassembler writes it, or its width where many do the same: `LDG.E.128`, `ymm`."""
    count: int = Field(ge=1)
    """Number of instructions."""


class Loop(Model):
    """A loop: the instructions that can run again before it is left."""

    line: int | None = None
    """Source line of the branch back to the start; null if the compiler does not tell."""
    innermost: bool
    """True if it contains no other loop."""
    instructions: int = Field(ge=1)
    """Instructions of its body, including inner loops."""
    counts: tuple[Count, ...]
    """Instructions of its body by kind."""
    routine: str = ""
    """Name of the routine that holds it."""
    outer: int | None = None
    """Position in `CompiledKernel.loops`, from 0, of the loop around it; null if there is none."""
    reads: bool = False
    """True if each iteration reads memory at another address (x86)."""
    serial_operations: int = 0
    """Scalar operations of one iteration, each of which waits for the one before (x86)."""
    scan: bool = False
    """True if each iteration stores the result of these operations: a scan, not a reduction (x86)."""

    def total(self, *groups: str) -> int:
        """Return the number of instructions of these groups."""
        return sum(count.count for count in self.counts if count.group in groups)

    @property
    def packed(self) -> int:
        """Number of packed arithmetic instructions (x86)."""
        fused = sum(
            count.count for count in self.counts if count.group == "multiply-add" and count.kind != "scalar"
        )
        return fused + self.total("packed arithmetic", "packed integer")


class SourceLine(Model):
    """One source line and the number of its instructions."""

    line: int = Field(ge=1)
    """Line number, from 1."""
    text: str
    """Text of the line, without indentation."""
    instructions: int = Field(ge=1)
    """Instructions that come from the line, or from library code inlined there."""
    memory: int = Field(ge=0)
    """Those that access memory, including shared memory and the stack."""


VectorOperation = Literal["load", "store", "atomic", "scratch"]
"""Vector memory operation of AMD's GPUs; a load is one from global memory."""


class LoadWait(Model):
    """A wait for loads from memory in AMD's assembly: `s_waitcnt vmcnt(pending)`."""

    line: int | None = None
    """Source line that it comes from; null if the compiler does not tell."""
    pending: int = Field(ge=0)
    """Vector memory operations, stores included, that may still be in flight after it; 0 waits for all."""
    distance: int = Field(ge=0)
    """Instructions between the youngest operation that it waits for and the wait: these hide the latency."""
    youngest: VectorOperation = "load"
    """Kind of that operation; at least one that it waits for is a load."""
    in_loop: bool = False
    """True if it stands in an innermost loop, where that operation may be one of the iteration before."""


class CompiledKernel(Model):
    """One compiled kernel; on a CPU all code of the file."""

    name: str
    """Function name."""
    workloads: tuple[str, ...]
    """Inspected workloads that launch it."""
    variant: str
    """Types and constants that it was compiled for: `/16` after a type means a known multiple of 16."""
    isa: Isa
    """Instruction set of the assembly."""
    assembly: str
    """Path of the disassembly, relative to the project if it lies inside."""
    ptx: str | None = None
    """Path of the PTX file, if there is one."""
    resources: Resources
    """Resources in the compiler's report."""
    instructions: int = Field(ge=1)
    """Number of instructions without padding."""
    counts: tuple[Count, ...]
    """Instructions by kind; cheap ones, such as address computations, are not counted."""
    loops: tuple[Loop, ...]
    """Loops in the order of the code, without those that only wait."""
    lines: tuple[SourceLine, ...]
    """The ten lines with the most instructions, some of them chosen by memory accesses."""
    block_warps: int | None = None
    """Warps of a block that it is launched with; null if unknown. A warp of AMD's GPUs, a wave, has 64 threads."""
    waits: tuple[LoadWait, ...] = ()
    """Waits for loads from memory (AMD), in the order of the code."""

    def total(self, *groups: str) -> int:
        """Return the number of instructions of these groups."""
        return sum(count.count for count in self.counts if count.group in groups)


class Notice(Model):
    """A suspicious pattern in the counts."""

    kernels: tuple[int, ...] = Field(min_length=1)
    """Positions in `Assembly.kernels`, from 1."""
    text: str
    """The pattern and its usual cause."""
    entry: str
    """Id of the knowledge entry with details."""


class Assembly(Model):
    """Assembly of one version for one architecture."""

    op: str
    """Name of the operator."""
    version: str
    """Version, such as `triton/v3`."""
    solution_sha256: Sha256
    """SHA-256 of the compiled file."""
    arch: str
    """Architecture: `sm_90a`, `native`."""
    workloads: tuple[str, ...]
    """Inspected workloads."""
    folder: str
    """Folder of the assembly files, relative to the project if it lies inside."""
    kernels: tuple[CompiledKernel, ...] = Field(min_length=1)
    """Every kernel and specialization that these workloads launch, in the order of the first launch."""
    notices: tuple[Notice, ...]
    """Suspicious patterns in the counts."""


class FigureChange(Model):
    """One figure that differs between two versions."""

    group: str
    """Group of the count, `in innermost loops`, or `resources`."""
    kind: str
    """Kind of the count, group of the instructions in the loops, or name of the figure."""
    before: int
    """Value in the other version."""
    after: int
    """Value in this version."""


class KernelPair(Model):
    """The kernels of two versions that serve the same workloads."""

    workloads: tuple[str, ...]
    """Workloads that the kernels serve."""
    before: tuple[int, ...]
    """The other version's kernels, by position from 1."""
    after: tuple[int, ...]
    """This version's kernels, by position from 1."""
    rows: tuple[FigureChange, ...]
    """Figures that differ. Counts of several kernels are added;
    of registers and shared memory the largest counts."""


class AssemblyDiff(Model):
    """Comparison of two versions."""

    before: Assembly
    """Assembly of the other version."""
    after: Assembly
    """Assembly of this version."""
    pairs: tuple[KernelPair, ...]
    """One pair for each two sets of kernels that serve the same workloads."""


def count_kinds(kinds: Iterable[tuple[str, str]], groups: Iterable[str]) -> tuple[Count, ...]:
    """Count pairs of group and kind: groups in the given order, the most frequent kind of each first."""
    from collections import Counter

    totals = Counter(kinds)
    order = {group: rank for rank, group in enumerate(groups)}
    ranked = sorted(totals.items(), key=lambda item: (order[item[0][0]], -item[1], item[0][1]))
    return tuple(Count(group=group, kind=kind, count=count) for (group, kind), count in ranked)


def kernel_occupancy(kernel: CompiledKernel, limits: MultiprocessorLimits) -> Occupancy | None:
    """Return the occupancy that a kernel's resources allow; None if its launch or its resources are unknown."""
    registers, shared = kernel.resources.registers, kernel.resources.shared_bytes
    if kernel.block_warps is None or registers is None:
        return None
    return resident_warps(limits, kernel.block_warps, registers, shared or 0)
