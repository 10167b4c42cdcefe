"""What `warpsmith doctor` found, one row a check, and the answer that follows from the rows alone.

Not ready: every kind of target is stopped by some row. Ready with gaps: at least one row is `missing`.
Ready: otherwise; a `gap` is told and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal, Self, get_args

from pydantic import model_validator

from warpsmith.core.base import Model

Kind = Literal["cpu", "gpu"]
"""A kind of target."""

KINDS: tuple[Kind, ...] = get_args(Kind)


class Readiness(StrEnum):
    """Whether the loop can run here."""

    READY = "Ready"
    GAPS = "Ready with gaps"
    NOT_READY = "Not ready"


class DoctorRow(Model):
    """What one check found."""

    name: str
    """What was looked for."""
    state: Literal["ok", "gap", "missing"]
    """`missing`: the loop would use it here; `gap`: it is not here, and the loop here does not need it."""
    found: str
    """What was found, or what is not there."""
    means: str = ""
    """Which command does what without it."""
    fix: str = ""
    """What to do; empty where nothing is to be done, or `found` says it."""
    stops: tuple[Kind, ...] = ()
    """The kinds of target that cannot be judged for it."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.state == "ok" and (self.fix or self.stops):
            raise ValueError("a row that is ok stops nothing and needs no fix")
        return self


class DoctorGroup(Model):
    """Checks that belong together."""

    name: str
    """What they are about."""
    rows: tuple[DoctorRow, ...]
    """In the order of the checks."""


class DoctorReport(Model):
    """Everything that was found, and the answer."""

    answer: Readiness
    """The answer."""
    judges: tuple[Kind, ...]
    """The kinds of target that can be judged on this machine."""
    first: str | None
    """What to do first where it is not ready."""
    groups: tuple[DoctorGroup, ...]
    """The rows."""

    @classmethod
    def of(cls, groups: Iterable[DoctorGroup]) -> Self:
        """The diagnosis that follows from these rows."""
        groups = tuple(groups)
        rows = [row for group in groups for row in group.rows]
        judges = tuple(kind for kind in KINDS if not any(kind in row.stops for row in rows))
        worst = None if judges else max(rows, key=lambda row: (len(row.stops), row.state == "missing"))
        if worst:
            answer = Readiness.NOT_READY
        else:
            answer = Readiness.GAPS if any(row.state == "missing" for row in rows) else Readiness.READY
        return cls(answer=answer, judges=judges, first=worst and (worst.fix or worst.found), groups=groups)
