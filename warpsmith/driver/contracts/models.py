"""The contracts as models: what agents hand to each other, one class a kind."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, PlainSerializer

from warpsmith.core.base import Model, Name, Positive, Slug
from warpsmith.core.profile import Bottleneck

Line = Annotated[str, Field(pattern=r"^\S(.*\S)?$")]
"""One line of text, as Markdown."""

Version = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*/v[1-9][0-9]*$")]
"""A version as records name it: `triton/v3`."""

Printed = Annotated[Decimal, PlainSerializer(float, when_used="json"), Field(allow_inf_nan=False)]
"""A number with the digits that were printed: they say how far it was rounded."""

Percent = Annotated[float, Field(ge=0)]
"""A share in percent."""


class StageRow(Model):
    """One row of the stage table."""

    name: Line
    """Kernel or workload."""
    seconds: Positive
    """Time a call."""
    tensor_pct: Percent | None
    """Tensor-core utilisation; null where not measured."""
    dram_pct: Percent | None
    """Bandwidth over the measured ceiling; null where not measured."""
    occupancy_pct: Percent | None
    """Achieved occupancy; null where not measured."""
    bottleneck: Bottleneck
    """The row's class."""
    issue: Line
    """The key issue in a few words."""


class Chance(Model):
    """One thing to try."""

    name: Line
    """What to do."""
    gain_pct: float = Field(ge=0, le=100)
    """Estimated gain in percent of the time."""
    metric: str
    """The metric that suggests it."""
    value: Printed
    """Its measured value."""
    entry: Slug | None = None
    """The knowledge entry that says how."""


class Moved(Model):
    """One metric before and now."""

    metric: str
    """Its name."""
    before: Printed | None
    """On the version before; null where not measured."""
    now: Printed | None
    """On this version; null where not measured."""
    change: Printed | None
    """The difference; null where not measured."""


class ProfileContract(Model):
    """Profiler to orchestrator: what limits a version."""

    op: Name
    """The operator."""
    version: Version
    """The version that was profiled."""
    target: Slug
    """The device kind."""
    stages: tuple[StageRow, ...]
    """The slowest first; empty only where nothing was timed, which does not pass the check."""
    bottleneck: Bottleneck
    """The class of the whole."""
    root_cause: Line
    """At most two sentences."""
    opportunities: tuple[Chance, ...] = Field(max_length=3)
    """The largest estimate first; none only at the limit."""
    compared: tuple[Moved, ...]
    """Against the version before; empty where there is none."""


class Optimization(Model):
    """One thing that the next version does."""

    name: Line
    """The knowledge entry, or what the line is about."""
    why: Line
    """What it is, and why here."""
    entry: Slug | None = None
    """The knowledge entry to read."""


class TaskContract(Model):
    """Orchestrator to designer: the version to write."""

    op: Name
    """The operator."""
    current: Version | None
    """The best version; null at the baseline."""
    due: Version
    """The version to write."""
    bottleneck: Bottleneck | None
    """What limits the best version; null where none was measured."""
    root_cause: Line
    """Why."""
    optimizations: tuple[Optimization, ...] = Field(min_length=1)
    """The hypothesis, and the entries that it applies."""
    constraints: tuple[Line, ...] = Field(min_length=1)
    """What the version must keep to."""


class Trial(Model):
    """A point at which a version was tried, or should be."""

    name: Line
    """The workload."""
    why: Line
    """Why this point matters."""


class VersionContract(Model):
    """Designer to orchestrator: the version that was written."""

    op: Name
    """The operator."""
    version: Version
    """The new version."""
    changes: tuple[Line, ...] = Field(min_length=1)
    """One change each."""
    files: tuple[Line, ...] = Field(min_length=1)
    """The files written."""
    correctness: Literal["PASS", "FAIL"]
    """What the check said."""
    checked: Line
    """What was run."""
    trials: tuple[Trial, ...] = Field(min_length=1)
    """Configurations that the timing should look at."""
    devlog: Line
    """Where the round is kept."""


class Cheat(Model):
    """A place that makes a benchmark faster, and not the use."""

    file: Line
    """The file."""
    line: int = Field(ge=1)
    """Its line."""
    what: Line
    """What it does, and why that would be no speed-up in use."""


class ReviewContract(Model):
    """Reviewer to orchestrator: whether a version's gain is real."""

    op: Name
    """The operator."""
    version: Version
    """The version that was reviewed."""
    cheats: tuple[Cheat, ...]
    """What was found; empty: none."""
    transfer: tuple[Line, ...] = Field(min_length=1)
    """Whether the gain will be there in use, and which cases are not covered."""
    verdict: Literal["CLEAN", "SUSPECT"]
    """The sum of it."""
    because: Line
    """One or two sentences."""


Contract = ProfileContract | TaskContract | VersionContract | ReviewContract

MODELS: dict[str, type[ProfileContract] | type[TaskContract] | type[VersionContract] | type[ReviewContract]] = {
    "profile": ProfileContract,
    "task": TaskContract,
    "version": VersionContract,
    "review": ReviewContract,
}
"""Kind of contract to its model."""
