"""Record of a performance map: versions, shapes with their times, and the version that runs at each shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from pydantic import Field, model_validator

from warpsmith.core.base import Minute, Model, Name, Positive, Sha256, Slug
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Comparison, Correctness, Interval
from warpsmith.core.hardware import Machine

MAP_VERSION = 1
"""Version of the record's format."""


class MapVersion(Model):
    """One accepted version that a map timed."""

    solution: str
    """Name of the version, such as `triton/v7`."""
    language: Name
    """Language of the version."""
    sha256: Sha256
    """Hash of the source that was timed."""
    failed: str = ""
    """Reason why it is used nowhere, with the shape; empty if it was correct at every shape."""


class MapTime(Model):
    """Times of one version at one shape, in the first timing."""

    solution: str
    """Name of the version."""
    seconds: Positive
    """Median seconds of a call."""
    samples: int = Field(ge=2)
    """Number of rounds."""
    correctness: Correctness
    """Errors of its outputs against the float64 reference."""
    comparison: Comparison | None = None
    """Paired comparison with the best single version; null for that version itself."""


class Confirmation(Model):
    """Second timing of the fastest version of a shape, in fresh processes, against two processes of the best
    single version."""

    solution: str
    """Version that the first timing found fastest."""
    seconds: Positive
    """Median seconds of a call."""
    best_seconds: Positive
    """Median seconds of a call of the best single version."""
    speedup: Positive
    """Median of the paired ratios to that process of the best single version where it is smaller."""
    interval: Interval
    """Interval of this speedup at the confidence of the map."""
    twin: Positive
    """Median of the paired ratios between the two processes of the best single version."""
    pairs: int = Field(ge=2)
    """Number of rounds."""
    correctness: Correctness
    """Errors of the timed outputs."""


class MapCell(Model):
    """One judged shape: the times there, and the version that runs there."""

    workload: Workload
    """Sizes, type and distribution."""
    times: tuple[MapTime, ...] = Field(min_length=1)
    """Times of every version that was timed there."""
    confirmation: Confirmation | None = None
    """Second timing; null where no other version was clearly ahead in the first."""
    solution: str
    """Version that runs there."""

    def time_of(self, solution: str) -> MapTime | None:
        """Return the times of a version; None if it was not timed there."""
        return next((time for time in self.times if time.solution == solution), None)


class PerformanceMap(Model):
    """Record of a map, `devlog/<op>/maps/<NNN>-<target>/record.json`, written once.

    A shape without a confirmation beyond the floor that runs another version than `best` cannot be written.
    """

    map_version: int = MAP_VERSION
    """Version of this format."""
    definition: Name
    """Name of the operator."""
    target: Slug
    """Kind of device."""
    definition_sha256: Sha256
    """Hash of the definition's file."""
    lab_sha256: Sha256
    """Hash of the lab's own code."""
    gate_version: int
    """Version of the gate whose rules graded and timed."""
    machine: Machine
    """Machine that it ran on, with device, driver, clocks and library versions."""
    measured: Minute
    """Time in UTC."""
    versions: tuple[MapVersion, ...] = Field(min_length=2)
    """Versions that were timed, today's best first."""
    best: str
    """Best single version: the one that runs at every shape that is not in the table."""
    best_reason: str
    """Reason why it is the best single version, in one sentence."""
    floor: Positive
    """Gain that noise may show at one shape, as a share; a smaller one is no gain."""
    confidence: float = Field(gt=0.9, lt=1)
    """Confidence of each interval of a confirmation, so that all of them hold together with 95 %."""
    calls: dict[str, int] = {}
    """Calls of a shape in a captured trace, which weigh it by calls and time; empty if all weigh the same."""
    cells: tuple[MapCell, ...] = Field(min_length=2)
    """Judged shapes."""
    notes: tuple[str, ...] = ()
    """Notes for readers of the times."""

    @model_validator(mode="after")
    def _check_choice(self) -> Self:
        sound = {version.solution for version in self.versions if not version.failed}
        if self.best not in sound:
            raise ValueError(f"`{self.best}` was not timed, or failed")
        for cell in self.deviations():
            second = cell.confirmation
            if second is None or second.solution != cell.solution or second.interval.low <= 1 + self.floor:
                raise ValueError(f"`{cell.solution}` was not shown faster at `{cell.workload.name}`")
            if cell.solution not in sound:
                raise ValueError(f"`{cell.solution}` failed, and is used at `{cell.workload.name}`")
        return self

    def deviations(self) -> Iterator[MapCell]:
        """Yield the shapes at which another version than the best single one runs."""
        return (cell for cell in self.cells if cell.solution != self.best)

    def used(self) -> list[MapVersion]:
        """Return the versions that run somewhere, the best single one first."""
        names = dict.fromkeys((self.best, *(cell.solution for cell in self.deviations())))
        by_name = {version.solution: version for version in self.versions}
        return [by_name[name] for name in names]
