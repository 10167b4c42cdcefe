"""Evidence on a version for a device that is not here: what its compiler says, and a time from a model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from warpsmith.core.base import Model, Positive


class LaunchFigures(Model):
    """Figures of a compiled kernel at one setting of its launch options."""

    num_warps: int = Field(ge=1)
    """Warps of a block."""
    num_stages: int | None = None
    """Pipeline stages; null if the kernel has no such option."""
    registers: int = Field(ge=0)
    """Registers of a thread; on AMD's GPUs vector registers, accumulators included."""
    spill_bytes: int = Field(ge=0)
    """Local or scratch memory of a thread, in bytes."""
    shared_bytes: int = Field(ge=0)
    """Shared memory (LDS) of a block, in bytes."""
    resident_warps: int | None = None
    """Warps that the resources allow on a multiprocessor; null if the device has no page with its limits."""
    limit: str = ""
    """Resource that allows no more: `registers`, `shared memory`, `blocks`, `warps`, `threads of a block`."""
    load_bits: int | None = None
    """Bits for a thread of the loads that move most from global memory; null if there is none."""
    obstacle: str = ""
    """Reason why it will not launch; empty if it will."""

    @property
    def resident_blocks(self) -> int | None:
        """Blocks that the resources allow on a multiprocessor; None if unknown."""
        return None if self.resident_warps is None else self.resident_warps // self.num_warps


class KernelLaunch(Model):
    """One launch of a kernel by a version's `run`, as its interpreter saw it."""

    kernel: str
    """Function name."""
    program: str
    """Text of the kernel and of all functions that it calls, and the values that these read, as JSON that the
    language reads."""
    grid: tuple[int, ...] = Field(min_length=1, max_length=3)
    """Blocks along each dimension."""
    call: str
    """Types, alignments and values of its arguments and its launch options, as JSON that the language reads."""

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        total = 1
        for size in self.grid:
            total *= size
        return total


class InterpretedKernel(Model):
    """One kernel that `run` launched under the interpreter, compiled for the target."""

    name: str
    """Function name."""
    variant: str
    """Types, constants and launch options that it was compiled for."""
    blocks: dict[str, int]
    """Blocks of its largest launch, by workload."""
    figures: LaunchFigures
    """Figures of the compiled code."""
    instructions: int = Field(ge=1)
    """Number of instructions; a loop's body counts once."""


class PortFigure(Model):
    """One figure of a version's compiled code, the worst one of all kernels, beside that of the version before."""

    name: str
    """Name of the figure with its unit; `MODEL us` is the mean of the model's times."""
    before: float | None
    """Value of the version that the campaign went on from; null at the baseline, or if it had none."""
    after: float
    """Value of this version."""

    @property
    def text(self) -> str:
        """Figure in words: `spill bytes 12 -> 0`, or `registers 96` where nothing changed."""
        if self.before is None or f"{self.before:.3g}" == f"{self.after:.3g}":
            return f"{self.name} {self.after:.4g}"
        return f"{self.name} {self.before:.4g} -> {self.after:.4g}"


class ModelTime(Model):
    """Time of a call at one workload by the model of a port; nothing was measured."""

    workload: str
    """Name of the workload."""
    seconds: Positive
    """Time in seconds."""
    bound: Literal["memory", "compute"]
    """Limit that gives it."""
    busy: float = Field(gt=0, le=1)
    """Share of the multiprocessors that the largest launch has blocks for."""


class FewerRows(Model):
    """A large workload of which the interpreter computed some rows."""

    workload: str
    """Name of the workload."""
    axis: str
    """Axis along which results are computed row by row."""
    rows: int = Field(ge=1)
    """Rows that were interpreted."""
    total: int = Field(ge=1)
    """Rows of the workload."""

    @property
    def text(self) -> str:
        """The workload in words: `8192x8192-fp32 at 512 of 8192 along rows`."""
        return f"{self.workload} at {self.rows} of {self.total} along {self.axis}"


class PortCheck(Model):
    """Check of a version by the compiler of a target that is not here."""

    arch: str
    """Architecture that it was compiled for."""
    kernels: tuple[InterpretedKernel, ...] = ()
    """Kernels that the representative workloads launched; empty if one of them does not compile."""
    times: tuple[ModelTime, ...] = ()
    """Times by the model, for the workloads that were interpreted; empty if the target's bandwidth is unknown."""
    fewer_rows: tuple[FewerRows, ...] = ()
    """Workloads of which the interpreter computed some rows, which launch the same kernels as all."""
    figures: tuple[PortFigure, ...] = ()
    """Figures of the compiled code, beside those of the version before."""
    notes: tuple[str, ...] = ()
    """Suspicious patterns in the machine code."""
