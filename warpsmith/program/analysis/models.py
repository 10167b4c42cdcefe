"""Analysis: where a program's step loses its time, and what to try, the largest gain first."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from warpsmith.core.base import Minute, Model, Sha256, Slug
from warpsmith.profiling.trace.models import Bound, Parts, Trace
from warpsmith.program.models import ProgramFacts

Level = Literal["High", "Medium", "Low"]

HIGH, MEDIUM = 0.20, 0.05
"""Shares of the step from which on an impact is high or medium."""


class AnalyzedProgram(Model):
    """The program that was analysed."""

    label: str
    """What people call it: `train.py`."""
    path: str
    """Its file, relative to the project's root; empty where it is a shell command."""
    sha256: Sha256 | None
    """The file's hash; null where it is a shell command."""
    module: str = ""
    """Its dotted name where it was given as one."""
    step: str = ""
    """Its step; empty where it is a shell command."""
    setup: str | None = None
    """Its setup."""
    args: tuple[str, ...] = ()
    """Its arguments."""
    command: str | None = None
    """The shell command."""


class Recommendation(Model):
    """One thing to try."""

    title: str
    """In words: `CUDA graphs`."""
    entry: Slug | None
    """The knowledge entry; null where it is work on one kernel, or on the program's own code."""
    impact: Level
    """By its share: `High` from 20 %, `Medium` from 5 %."""
    share: float = Field(ge=0, le=1)
    """Share of the step's time that it attacks: it brings no more."""
    ceiling: float | None = Field(ge=1)
    """Amdahl's bound 1 / (1 - share); null where the share is everything, or where it is for memory."""
    effort: Level
    """How much of the program must be edited."""
    risk: Level
    """How easily results or behaviour change."""
    specialist: str
    """The task by which `warpsmith route` names who does it."""
    evidence: str
    """The numbers that it rests on, in one sentence."""
    task: str
    """What to do, in one sentence."""
    subject: str = ""
    """The operator or kernel where it is about one: `aten::_softmax`."""
    lacks: str = ""
    """Why `warpsmith program apply` would refuse its entry, in one sentence; empty where nothing is against it."""


class Hotspot(Model):
    """A kernel that takes a good part of a step; on a CPU, an operator."""

    name: str
    """Its short name."""
    calls: float = Field(ge=0)
    """Calls a step."""
    seconds: float = Field(ge=0)
    """Time a step in which nothing else ran."""
    share: float = Field(ge=0, le=1)
    """The same over the step's time."""
    ceiling: float | None = Field(ge=1)
    """Amdahl's bound if it became free; null where it is everything."""


class Analysis(Model):
    """What `warpsmith program analyze` found; kept as `devlog/programs/<name>/analyses/<NNN>.json`."""

    subject: AnalyzedProgram
    """The program."""
    made: Minute
    """When."""
    steps: int = Field(ge=1)
    """Steps that were traced."""
    step_seconds: float = Field(gt=0)
    """A step without the profiler; of a shell command, with it."""
    bound: Bound
    """The primary bottleneck: the largest part of a step, idle time of both sorts taken together first."""
    why: str
    """Its numbers in one sentence."""
    parts: Parts
    """One step's time in parts; idle time is what a step without the profiler leaves beside the device's work."""
    idle_share: float = Field(ge=0, le=1)
    """Share of a step in which the device does nothing."""
    hotspots: tuple[Hotspot, ...]
    """The kernels that take the most time."""
    findings: tuple[str, ...]
    """What is odd or wrong: a loss that is NaN, a GPU that nothing uses."""
    recommendations: tuple[Recommendation, ...]
    """What to try, the largest share first."""
    facts: ProgramFacts
    """What the program is made of."""
    trace: Trace
    """The trace's own analysis."""
    broken: bool = False
    """Whether a step returned NaN or infinity."""


def impact_level(share: float) -> Level:
    """The level of something that attacks this share of a step."""
    return "High" if share >= HIGH else "Medium" if share >= MEDIUM else "Low"


def amdahl_bound(share: float) -> float | None:
    """Amdahl's bound of the speedup; None where the share is everything."""
    return 1 / (1 - share) if share < 1 else None
