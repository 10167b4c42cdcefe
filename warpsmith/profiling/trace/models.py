"""Models of a trace's analysis: where the time of a whole script goes, from its Chrome trace alone."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from warpsmith.core.base import Model, Sha256

Bound = Literal["kernel-bound", "launch-bound", "host-bound", "copy-bound", "communication-bound"]

Family = Literal[
    "matrix-product",
    "convolution",
    "attention",
    "normalisation",
    "softmax",
    "elementwise",
    "reduction",
    "optimizer",
    "indexing",
    "communication",
    "copy",
    "memset",
    "other",
]
"""Family of a kernel, as far as its name tells."""


class TraceSteps(Model):
    """Steps that the script marks."""

    range: str
    """Name of the ranges that mark them: `step`, `ProfilerStep#`."""
    ignored: int = Field(ge=0)
    """Number of steps at the start that are left out: the first is warm-up."""
    count: int = Field(ge=1)
    """Number of analyzed steps."""
    median_seconds: float = Field(gt=0)
    """Median time of a step, from its first device work to the next step's."""
    fastest_seconds: float = Field(gt=0)
    """Time of the fastest step."""
    slowest_seconds: float = Field(gt=0)
    """Time of the slowest step."""
    median_busy_seconds: float = Field(ge=0)
    """Median of the time in a step in which the device was busy."""


class Region(Model):
    """The analyzed part of the trace."""

    begin_seconds: float = Field(ge=0)
    """Begin, counted from the trace's first event."""
    seconds: float = Field(gt=0)
    """Duration: the wall time that all figures refer to."""
    skipped_seconds: float = Field(ge=0)
    """Time at the start that the caller asked to skip."""
    steps: TraceSteps | None = None
    """Steps in the region; null if the script marks none."""
    words: str
    """The region in one sentence."""


class Parts(Model):
    """The wall time in five disjoint parts; their sum is the wall time."""

    kernels_seconds: float = Field(ge=0)
    """Time in which kernels, memsets and copies on or between devices run; on a CPU, PyTorch's operators."""
    communication_seconds: float = Field(ge=0)
    """Time of collectives that no kernel hides."""
    copies_seconds: float = Field(ge=0)
    """Time of copies between host and device that neither kernels nor collectives hide."""
    launches_seconds: float = Field(ge=0)
    """Idle time in gaps so short that issuing the next kernel explains them; 0 on a CPU."""
    host_seconds: float = Field(ge=0)
    """Idle time in longer gaps, in which the device waits for the program."""


class Gap(Model):
    """A time in which the device was idle."""

    at_seconds: float = Field(ge=0)
    """Begin, counted from the region's begin."""
    seconds: float = Field(gt=0)
    """Length, in seconds."""
    after: str | None
    """Kernel before it; null at the region's begin."""
    before: str | None
    """Kernel after it; null at the region's end."""
    host: str | None
    """Activity of the CPU for most of it; null if the trace shows none, as for plain Python."""


class Gaps(Model):
    """Times in which the device was idle."""

    threshold_seconds: float = Field(gt=0)
    """Duration below which gaps are not counted."""
    count: int = Field(ge=0)
    """Number of gaps above the threshold."""
    seconds: float = Field(ge=0)
    """Their sum."""
    largest: tuple[Gap, ...]
    """Gaps in order of duration, the largest first."""


class Copies(Model):
    """All copies of one kind."""

    kind: str
    """Kind: `HtoD`, `DtoH`, `DtoD`, `PtoP`, or the tool's own name."""
    pageable: bool | None
    """True if the host memory is pageable; null if the trace does not tell."""
    count: int = Field(ge=1)
    """Number of copies."""
    seconds: float = Field(ge=0)
    """Their sum."""
    bytes: int | None
    """Copied bytes; null if the trace does not tell."""


class Communication(Model):
    """Collective operations between devices."""

    count: int = Field(ge=1)
    """Number of kernels."""
    seconds: float = Field(ge=0)
    """Time in which at least one collective ran."""
    exposed_seconds: float = Field(ge=0)
    """Part of that time in which no other kernel ran."""
    hidden_seconds: float = Field(ge=0)
    """Part of that time hidden behind other kernels."""


class Waits(Model):
    """Calls in which the CPU waits for the device."""

    count: int = Field(ge=0)
    """Number of calls."""
    seconds: float = Field(ge=0)
    """Time in which the CPU waited."""


class TracedKernel(Model):
    """Kernels of one short name; on a CPU, operators by self time."""

    name: str
    """Short name."""
    example: str
    """A full name, truncated if it is long."""
    family: Family
    """Family, as far as the name tells."""
    calls: int = Field(ge=0)
    """Number of runs in the region."""
    seconds: float = Field(ge=0)
    """Sum of its times."""
    mean_seconds: float = Field(ge=0)
    """Mean time of a run."""
    alone_seconds: float = Field(ge=0)
    """Time in which nothing else ran: the most that the wall time could lose."""


class Attackable(Model):
    """A possible improvement, with the most that the whole script could gain from it."""

    name: str
    """Short name of a kernel, or the name of a group."""
    kind: Literal["kernel", "fusable", "launches", "host", "communication", "copies"]
    """Kind of time; a fusable group counts time of kernels that have rows of their own."""
    seconds: float = Field(ge=0)
    """Wall time that would be saved."""
    share: float = Field(ge=0, le=1)
    """Saved time over the wall time."""
    ceiling: float | None = Field(ge=1)
    """Amdahl's bound 1 / (1 - share): speedup if it became free; null if it is everything."""
    attack: str
    """Suggested approach."""


class Trace(Model):
    """Analysis of a Chrome trace."""

    source: str
    """Path of the trace file."""
    sha256: Sha256
    """SHA-256 of the trace file."""
    script: str
    """Script and its arguments; empty if the trace does not tell."""
    evidence: Literal["gpu", "cpu"]
    """`gpu`: device activity. `cpu`: there is none, and PyTorch's operators stand for the kernels."""
    device: str
    """Name of the device; empty if the trace does not tell."""
    rank: int | None
    """Rank of the process in a distributed run; null if the trace does not tell."""
    region: Region
    """Analyzed part of the trace."""
    busy_seconds: float = Field(ge=0)
    """Time in which at least one kernel, copy or memset ran, on any stream."""
    idle_share: float = Field(ge=0, le=1)
    """Share of the wall time in which none ran."""
    parts: Parts
    """Wall time by part."""
    bound: Bound
    """Class of the bottleneck: the largest part; both kinds of idle time count as one part."""
    why: str
    """Numbers behind the class, in one sentence."""
    launches: int = Field(ge=0)
    """Number of kernels in the region, including collectives, without copies and memsets."""
    median_kernel_seconds: float = Field(ge=0)
    """Median time of a kernel; 0 if there is none."""
    gaps: Gaps
    """Times in which the device was idle."""
    copies: tuple[Copies, ...]
    """Copies by kind, the longest first."""
    communication: Communication | None
    """Collectives; null if there are none."""
    waits: Waits
    """Synchronization calls."""
    kernels: tuple[TracedKernel, ...]
    """The first twenty kernels by short name, the most time first."""
    ranking: tuple[Attackable, ...]
    """The first twelve possible improvements, the largest share first."""
    notes: tuple[str, ...]
    """Limits of these figures."""

    @property
    def repetitions(self) -> int:
        """Number of steps that totals are divided by; 1 if there are no steps."""
        return self.region.steps.count if self.region.steps else 1
