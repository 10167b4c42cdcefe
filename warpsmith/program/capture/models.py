"""Models of a CUDA graph check: blockers, capture attempts, modules and the verdict."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from warpsmith.core.base import Model

Certainty = Literal["certain", "likely", "look"]
"""`certain`: the line stops the capture or makes replays wrong. `likely`: it does so if its tensors are where they
seem to be. `look`: a person has to decide; it does not count against the verdict."""

EvidenceLevel = Literal["run on cpu", "run on gpu", "capture"]
"""Source of a blocker, the weakest first: a watched step, or a capture that failed."""

Effect = Literal["blocks", "freezes"]
"""`blocks`: the capture fails. `freezes`: it succeeds, and every replay repeats the value of the capture."""

Verdict = Literal["captures whole", "partly", "not at all"]

EVIDENCE_LEVELS: tuple[EvidenceLevel, ...] = ("run on cpu", "run on gpu", "capture")
"""Levels of evidence, the weakest first."""


class Blocker(Model):
    """One operation that stands in the way of a capture, at one line."""

    kind: str
    """Name of the rule: `host-read`, `data-shape`, `optimizer`."""
    effect: Effect
    """Effect on a graph."""
    certainty: Certainty
    """Certainty of that effect."""
    what: str
    """Description of the operation: `.item()`, `a number that changes: 1, 2, 3`."""
    file: str
    """Path of the file, relative to the program's folder."""
    line: int = Field(ge=1)
    """Line number."""
    function: str
    """Function that contains the line; empty if unknown."""
    code: str
    """Text of the line, without its indentation."""
    why: str
    """Reason why a graph cannot hold the operation."""
    mend: str
    """Repair, in one phrase."""
    seen: tuple[EvidenceLevel, ...] = Field(min_length=1)
    """Evidence for the blocker, the weakest first."""
    module: str = ""
    """Path of the innermost module whose forward was running, such as `model.blocks.0`; empty outside modules."""

    @property
    def counts(self) -> bool:
        """Return true if the blocker counts against the verdict."""
        return self.certainty != "look"


class GraphModule(Model):
    """One module that a step calls."""

    name: str
    """Path of the module: `model.blocks.0`."""
    kind: str
    """Class of the module."""
    calls: int = Field(ge=1)
    """Calls per step."""
    share: float = Field(ge=0, le=1)
    """Share of the step's time: its forward, and its part of the backward pass."""
    alike: str
    """Key that modules of one class with like parameters and inputs have in common; one is tried for all."""
    reason: str = ""
    """Reason why the module cannot be captured by itself; empty if none is known."""


class CoveredModule(Model):
    """One module that is captured by itself."""

    name: str
    """Path of the module."""
    kind: str
    """Class of the module."""
    share: float = Field(ge=0, le=1)
    """Share of the step's time."""
    tried: bool
    """True if its capture was attempted; false if nothing is known against it."""


class CaptureAttempt(Model):
    """One attempt to capture a graph, in a process of its own, and its replays compared with eager steps."""

    what: str
    """`step`, or the paths of the modules that were captured."""
    captured: bool
    """True if the capture succeeded."""
    error: str = ""
    """Error of the capture or of a replay, in one line; empty if both succeeded."""
    steps: int = Field(ge=0, default=0)
    """Number of replays that were compared with eager steps, each with new content in its inputs."""
    difference: float | None = Field(ge=0, default=None)
    """Largest difference of a value from the eager one, relative to its size; null if nothing was compared."""
    noise: float | None = Field(ge=0, default=None)
    """Same difference between two eager runs, measured if replays differ; null if it was not needed."""
    equal: bool | None = None
    """True if replays gave the eager values; null if nothing could be compared."""
    eager_seconds: float | None = Field(gt=0, default=None)
    """Median seconds of an eager step."""
    replay_seconds: float | None = Field(gt=0, default=None)
    """Median seconds of a replayed step."""

    @property
    def succeeded(self) -> bool:
        """Return true if the capture succeeded and no compared replay differs from the eager steps."""
        return self.captured and self.equal is not False

    @property
    def speedup(self) -> float | None:
        """Return eager over replay time, or None if either is missing."""
        return self.eager_seconds / self.replay_seconds if self.eager_seconds and self.replay_seconds else None


class GraphCheck(Model):
    """Result of a CUDA graph check of one step."""

    program: str
    """Program as it was named."""
    step: str
    """Name of its step."""
    device: str
    """Device that the steps ran on: the name of a GPU, or `cpu`."""
    torch: str
    """Version of PyTorch."""
    level: EvidenceLevel
    """Strongest evidence behind the verdict; below `capture` the verdict is an expectation."""
    files: tuple[str, ...]
    """Files of the program from which the watched steps called an operator."""
    steps: int = Field(ge=0)
    """Number of watched steps."""
    blockers: tuple[Blocker, ...]
    """Blockers, the most certain first; one for each line and kind."""
    verdict: Verdict
    """Part of the step that can be captured."""
    covered: tuple[CoveredModule, ...] = ()
    """Modules that can be captured, in the order of the step; empty unless the verdict is `partly`."""
    whole: CaptureAttempt | None = None
    """Attempt to capture the whole step; null if there was none."""
    parts: tuple[CaptureAttempt, ...] = ()
    """Attempts to capture modules, in their order; the last one has all modules that succeeded together."""
    notes: tuple[str, ...] = ()
    """Limits of the check."""

    @property
    def share(self) -> float:
        """Return the share of the step's time that the covered modules take."""
        return min(1.0, sum(module.share for module in self.covered))
