"""Analysis: the bottleneck of a program's step, and recommendations in the order of their gain."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from warpsmith.core.base import Minute, Model, Sha256, Slug
from warpsmith.profiling.trace.models import Bound, Parts, Trace
from warpsmith.program.analysis.ranks import AnalyzedRanks
from warpsmith.program.analysis.throughput import StepLimit, StepWork
from warpsmith.program.lines.models import LineFinding
from warpsmith.program.models import ProgramFacts

Level = Literal["High", "Medium", "Low"]

HIGH, MEDIUM = 0.20, 0.05
"""Least shares of the step at which an impact is high or medium."""


class AnalyzedProgram(Model):
    """The analyzed program."""

    label: str
    """Short name of the program: `train.py`."""
    path: str
    """Its file, relative to the project root; empty for a shell command that names none."""
    sha256: Sha256 | None
    """Hash of the file; null without one."""
    module: str = ""
    """Its dotted name, if the command gave one."""
    step: str = ""
    """The step's function; empty for a shell command."""
    setup: str | None = None
    """The function whose result the step takes."""
    args: tuple[str, ...] = ()
    """The program's own arguments."""
    command: str | None = None
    """The shell command; null for a program."""
    writes: tuple[str, ...] = ()
    """Files and folders of the project that the command may write, relative to it."""


class Recommendation(Model):
    """Recommendation of one rule, with the numbers behind it."""

    title: str
    """Title: `CUDA graphs`."""
    entry: Slug | None
    """The knowledge entry; null if the work is on one kernel or on the program's own code."""
    impact: Level
    """Level of the share: `High` from 20 %, `Medium` from 5 %."""
    share: float = Field(ge=0, le=1)
    """Share of the step's time that it attacks, which is the most that it can save."""
    ceiling: float | None = Field(ge=1)
    """Amdahl's bound 1 / (1 - share); null if the share is the whole step."""
    effort: Level
    """Amount of the program that must be edited."""
    risk: Level
    """Risk that results or behavior change."""
    specialist: str
    """Task name, from which `warpsmith route` chooses the specialist."""
    evidence: str
    """The numbers behind it, in one sentence."""
    task: str
    """The work to do, in one sentence."""
    subject: str = ""
    """The operator or kernel, if it concerns a single one: `aten::_softmax`."""
    lines: tuple[str, ...] = ()
    """Lines that it concerns, as `train.py:12`; empty if it concerns the whole step, or no step was watched."""
    packages: tuple[str, ...] = ()
    """Libraries that those lines belong to; empty if they are the program's own."""
    lacks: str = ""
    """Reason why `warpsmith program apply` would refuse its entry, in one sentence; empty if it would not."""


class Hotspot(Model):
    """A kernel that takes a large part of a step; on a CPU, an operator."""

    name: str
    """Short name of the kernel."""
    calls: float = Field(ge=0)
    """Calls per step."""
    seconds: float = Field(ge=0)
    """Seconds per step in which no other kernel ran."""
    share: float = Field(ge=0, le=1)
    """Those seconds divided by the time of the step."""
    ceiling: float | None = Field(ge=1)
    """Amdahl's bound if the kernel took no time; null if it is the whole step."""


class Analysis(Model):
    """Result of `warpsmith program analyze`: `devlog/programs/<name>/analyses/<NNN>.json`."""

    subject: AnalyzedProgram
    """The program."""
    made: Minute
    """Time of the analysis, in UTC."""
    steps: int = Field(ge=1)
    """Number of traced steps."""
    step_seconds: float = Field(gt=0)
    """Seconds per step without the profiler; for a shell command, with it."""
    bound: Bound
    """The primary bottleneck: the largest part of a step, where both kinds of idle time count as one part."""
    why: str
    """The numbers of the bottleneck, in one sentence."""
    parts: Parts
    """Time of one step in parts; idle time is the step without the profiler minus the work of the device."""
    idle_share: float = Field(ge=0, le=1)
    """Share of a step in which the device is idle."""
    hotspots: tuple[Hotspot, ...]
    """The kernels that take the most time."""
    findings: tuple[str, ...]
    """Observations of something odd or wrong: a NaN loss, an unused GPU."""
    lines: tuple[LineFinding, ...] = ()
    """Lines of the program and of its libraries that cost time in a step, the largest share first."""
    recommendations: tuple[Recommendation, ...]
    """Recommendations, the largest share first."""
    facts: ProgramFacts
    """Facts about the program."""
    trace: Trace
    """Analysis of the trace; with several ranks, of the first one's."""
    ranks: AnalyzedRanks | None = None
    """All ranks of the program; null if it has only one."""
    work: StepWork | None = None
    """Data that one step handles; null if it is unknown."""
    limit: StepLimit | None = None
    """The least time that the device needs for the step's products; null if no step was watched."""
    broken: bool = False
    """True if a step returned NaN or infinity."""


def impact_level(share: float) -> Level:
    """Return the impact level of a recommendation that attacks this share of a step."""
    return "High" if share >= HIGH else "Medium" if share >= MEDIUM else "Low"


def amdahl_bound(share: float) -> float | None:
    """Return Amdahl's bound of the speedup; None if the share is the whole."""
    return 1 / (1 - share) if share < 1 else None
