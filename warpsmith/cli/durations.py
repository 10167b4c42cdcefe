"""Durations of long commands on this machine, kept in the project, from which the next run is estimated."""

from __future__ import annotations

import platform
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpsmith.project import Project

_FILE = "durations.json"


@dataclass(frozen=True)
class Duration:
    """Duration of one command with its arguments on this machine."""

    path: Path
    """File of the project's durations."""
    job: str
    """Command and what decides how long it takes: `judge softmax/cpp against the best version`."""

    def seconds(self) -> float | None:
        """Return the wall time of its last complete run in seconds; None if there was none."""
        return _read(self.path).get(self._key)

    def save(self, seconds: float) -> None:
        """Keep the wall time of a complete run; a project that cannot be written keeps none."""
        import json

        from warpsmith import files

        durations = _read(self.path) | {self._key: round(seconds, 1)}
        with suppress(OSError):
            files.write_file(self.path, json.dumps(durations, indent=2, sort_keys=True) + "\n")

    @property
    def _key(self) -> str:
        return f"{platform.node()}: {self.job}"


def duration_of(project: Project, job: str) -> Duration:
    """Return the duration of a job in a project."""
    return Duration(project.scratch / _FILE, job)


def _read(path: Path) -> dict[str, float]:
    """Read durations by machine and job; a missing or damaged file has none."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(dict[str, float]).validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return {}
