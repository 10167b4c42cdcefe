"""CUDA graph check: what keeps a step from being captured, how that is known, and what could be."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from warpsmith.core.base import Model

Certainty = Literal["certain", "likely", "look"]
"""`certain`: it stops the capture or spoils the replay. `likely`: it does if this line runs or holds what it seems
to hold. `look`: somebody has to see; it decides nothing."""

Seen = Literal["source", "run on cpu", "run on gpu", "capture"]
"""How a blocker is known, the weakest first: read in the source, done by a step, named by a failed capture."""

Effect = Literal["blocks", "freezes"]
"""`blocks`: the capture fails. `freezes`: it succeeds, and every replay repeats what was so at the capture."""

Verdict = Literal["captures whole", "partly", "not at all"]

LEVELS: tuple[Seen, ...] = ("source", "run on cpu", "run on gpu", "capture")
"""Levels of evidence, the weakest first."""


class Blocker(Model):
    """One thing that stands in the way, at one line."""

    kind: str
    """Which rule: `host-read`, `data-shape`, `optimizer`."""
    effect: Effect
    """What it does to a graph."""
    certainty: Certainty
    """How sure that is."""
    what: str
    """What the line does: `.item()`, `a number that changes: 1, 2, 3`."""
    file: str
    """The file, relative to the program's folder."""
    line: int = Field(ge=1)
    """Its line."""
    function: str
    """The function that the line is in; empty where it is not known."""
    code: str
    """The line, without its indent."""
    why: str
    """Why that keeps a graph from being right."""
    mend: str
    """How to mend it, in one phrase."""
    seen: tuple[Seen, ...] = Field(min_length=1)
    """How it is known, the weakest first."""
    module: str = ""
    """The innermost module whose forward was running: `model.blocks.0`; empty: none, or nothing was run."""

    @property
    def counts(self) -> bool:
        """Whether a verdict rests on it."""
        return self.certainty != "look"


class GraphModule(Model):
    """A module that a step calls."""

    name: str
    """Where it is: `model.blocks.0`."""
    kind: str
    """Its class."""
    calls: int = Field(ge=1)
    """Calls a step."""
    share: float = Field(ge=0, le=1)
    """Its forward, and its backward where it has one, over the step's time."""
    alike: str
    """The same for modules of one class with like parameters and inputs: one stands for all."""
    reason: str = ""
    """Why it cannot be captured by itself; empty: nothing is known against it."""


class Covered(Model):
    """A module that is captured by itself."""

    name: str
    """Where it is."""
    kind: str
    """Its class."""
    share: float = Field(ge=0, le=1)
    """Its share of the step's time."""
    tried: bool
    """Whether its capture was tried; else nothing is known against it."""


class Trial(Model):
    """A capture that was tried in a process of its own, and its replays beside eager steps."""

    what: str
    """`step`, or the names of the modules that were captured."""
    captured: bool
    """Whether the capture succeeded."""
    error: str = ""
    """What failed, in one line: the capture, or a replay of what was captured; empty where both succeeded."""
    steps: int = Field(ge=0, default=0)
    """Replays that were compared with eager steps, with new content in the inputs each time."""
    difference: float | None = Field(ge=0, default=None)
    """Largest difference of a value from the eager step's, over its size; null: there was nothing to compare."""
    noise: float | None = Field(ge=0, default=None)
    """The same between two eager runs, where replays differed; null where it was not needed."""
    equal: bool | None = None
    """Whether replays gave the eager values; null where nothing could be compared."""
    eager_seconds: float | None = Field(gt=0, default=None)
    """Median of an eager step."""
    replay_seconds: float | None = Field(gt=0, default=None)
    """Median of a replayed one."""

    @property
    def good(self) -> bool:
        """Whether it captured and replayed what eager gives, as far as anything could be compared."""
        return self.captured and self.equal is not False

    @property
    def speedup(self) -> float | None:
        """Eager over replay."""
        return self.eager_seconds / self.replay_seconds if self.eager_seconds and self.replay_seconds else None


class GraphCheck(Model):
    """Whether a step can be a CUDA graph."""

    program: str
    """The program as it was given."""
    step: str
    """Its step."""
    device: str
    """Device that the steps ran on: a GPU's name, `cpu`; empty where nothing was run."""
    torch: str
    """PyTorch's version; empty where nothing was run."""
    level: Seen
    """The strongest evidence that the verdict rests on; below `capture` it is an expectation."""
    files: tuple[str, ...]
    """Files of the program that the step reaches, as far as the source tells."""
    steps: int = Field(ge=0)
    """Steps that were watched."""
    blockers: tuple[Blocker, ...]
    """What stands in the way, the surest first; each line once a kind."""
    verdict: Verdict
    """What can be captured."""
    covered: tuple[Covered, ...] = ()
    """Where only a part can: the modules, in the order of the step."""
    whole: Trial | None = None
    """The capture of the whole step; null where none was tried."""
    parts: tuple[Trial, ...] = ()
    """Captures of modules, in the order in which they were tried; the last is all that succeeded together."""
    notes: tuple[str, ...] = ()
    """What limits this."""

    @property
    def share(self) -> float:
        """Share of the step's time that the covered modules have."""
        return min(1.0, sum(one.share for one in self.covered))
