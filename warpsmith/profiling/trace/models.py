"""Trace: where the time of a whole script goes, computed from its Chrome trace alone."""

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
"""What a kernel does, as far as its name tells."""


class Steps(Model):
    """The script's own repetitions."""

    range: str
    """Name of the ranges that mark them: `step`, `ProfilerStep#`."""
    ignored: int = Field(ge=0)
    """Steps at the start that are left out: the first is warm-up."""
    count: int = Field(ge=1)
    """Steps that were analysed."""
    median_seconds: float = Field(gt=0)
    """Median of a step, from its first device work to the next step's."""
    fastest_seconds: float = Field(gt=0)
    """The fastest."""
    slowest_seconds: float = Field(gt=0)
    """The slowest."""
    median_busy_seconds: float = Field(ge=0)
    """Median of the time in a step in which the device worked."""


class Region(Model):
    """The part of the trace that was analysed."""

    begin_seconds: float = Field(ge=0)
    """Where it begins, counted from the trace's first event."""
    seconds: float = Field(gt=0)
    """How long it is: the wall time of all figures."""
    skipped_seconds: float = Field(ge=0)
    """What the caller asked to leave out at the start."""
    steps: Steps | None = None
    """The steps that it is made of; null where the script marks none."""
    words: str
    """The same in one sentence."""


class Parts(Model):
    """The wall time in five parts, each second in one of them; their sum is the wall time."""

    kernels_seconds: float = Field(ge=0)
    """Kernels, memsets and copies on or between devices run; on a CPU, PyTorch's operators."""
    communication_seconds: float = Field(ge=0)
    """Collectives that no kernel hides."""
    copies_seconds: float = Field(ge=0)
    """Copies between host and device that neither kernels nor collectives hide."""
    launches_seconds: float = Field(ge=0)
    """Nothing runs, in gaps so short that issuing the next kernel explains them; 0 on a CPU."""
    host_seconds: float = Field(ge=0)
    """Nothing runs, in longer gaps: the device waits for the program."""


class Gap(Model):
    """A time in which the device did nothing."""

    at_seconds: float = Field(ge=0)
    """Where it begins, counted from the region's begin."""
    seconds: float = Field(gt=0)
    """How long it is."""
    after: str | None
    """The kernel before it; null at the region's begin."""
    before: str | None
    """The kernel after it; null at the region's end."""
    host: str | None
    """What the CPU did for most of it; null where the trace shows nothing, such as plain Python."""


class Gaps(Model):
    """Times in which the device did nothing."""

    threshold_seconds: float = Field(gt=0)
    """Shorter ones are not counted here."""
    count: int = Field(ge=0)
    """Gaps above the threshold."""
    seconds: float = Field(ge=0)
    """Their sum."""
    largest: tuple[Gap, ...]
    """The largest first."""


class Copies(Model):
    """Copies of one kind."""

    kind: str
    """`HtoD`, `DtoH`, `DtoD`, `PtoP`, or the tool's own name."""
    pageable: bool | None
    """Whether the host's side is pageable; null where the trace does not say."""
    count: int = Field(ge=1)
    """How many."""
    seconds: float = Field(ge=0)
    """Their sum."""
    bytes: int | None
    """Bytes; null where the trace does not say."""


class Communication(Model):
    """Collectives."""

    count: int = Field(ge=1)
    """Kernels."""
    seconds: float = Field(ge=0)
    """Time in which at least one ran."""
    exposed_seconds: float = Field(ge=0)
    """The part in which no other kernel ran."""
    hidden_seconds: float = Field(ge=0)
    """The part behind other kernels."""


class Waits(Model):
    """Calls by which the CPU waits for the device."""

    count: int = Field(ge=0)
    """Calls."""
    seconds: float = Field(ge=0)
    """Time in which the CPU waited."""


class TracedKernel(Model):
    """Kernels of one short name; on a CPU, operators by self time."""

    name: str
    """The short name."""
    example: str
    """A full name, cut where it is long."""
    family: Family
    """What it does, as far as the name tells."""
    calls: int = Field(ge=0)
    """How often it ran in the region."""
    seconds: float = Field(ge=0)
    """Sum of its times."""
    mean_seconds: float = Field(ge=0)
    """Sum over calls."""
    alone_seconds: float = Field(ge=0)
    """Time in which nothing else ran: what the wall time could lose."""


class Attackable(Model):
    """Something that could become faster, with what the whole could gain from it at most."""

    name: str
    """A kernel's short name, or what the group is."""
    kind: Literal["kernel", "fusable", "launches", "host", "communication", "copies"]
    """What sort of time it is; a fusable group counts time of kernels that have rows of their own."""
    seconds: float = Field(ge=0)
    """Wall time that would be gone."""
    share: float = Field(ge=0, le=1)
    """The same over the wall time."""
    ceiling: float | None = Field(ge=1)
    """Amdahl's bound 1 / (1 - share): speedup if it became free; null where it is everything."""
    attack: str
    """How to go about it."""


class Trace(Model):
    """A Chrome trace, analysed."""

    source: str
    """The file."""
    sha256: Sha256
    """Its hash."""
    script: str
    """The script and its arguments; empty where the trace does not say."""
    evidence: Literal["gpu", "cpu"]
    """`gpu`: device activity. `cpu`: there is none, and PyTorch's operators stand for the kernels."""
    device: str
    """The device's name; empty where the trace does not say."""
    rank: int | None
    """Rank of the process in a distributed run; null where the trace does not say."""
    region: Region
    """What was analysed."""
    busy_seconds: float = Field(ge=0)
    """Time in which at least one kernel, copy or memset ran, on any stream."""
    idle_share: float = Field(ge=0, le=1)
    """The rest, over the wall time."""
    parts: Parts
    """The wall time in parts."""
    bound: Bound
    """The class: the largest part, idle time of both sorts taken together first."""
    why: str
    """The class's numbers in one sentence."""
    launches: int = Field(ge=0)
    """Kernels in the region, collectives among them; copies and memsets are not."""
    median_kernel_seconds: float = Field(ge=0)
    """Half of the kernels are shorter; 0 where there is none."""
    gaps: Gaps
    """Idle times."""
    copies: tuple[Copies, ...]
    """By kind, the longest first."""
    communication: Communication | None
    """Collectives; null where there are none."""
    waits: Waits
    """Synchronisations."""
    kernels: tuple[TracedKernel, ...]
    """By short name, the most time first; the first twenty."""
    ranking: tuple[Attackable, ...]
    """What to attack, the largest share first; the first twelve."""
    notes: tuple[str, ...]
    """What limits these figures."""

    @property
    def repetitions(self) -> int:
        """By how much totals are divided for figures a step; 1 where there are no steps."""
        return self.region.steps.count if self.region.steps else 1
