"""Results of `warpsmith doctor`: one row per check, and the answer that follows from the rows alone.

Not ready: every kind of target is stopped by some row. Ready with gaps: at least one row is `missing`.
Ready: otherwise; a `gap` is reported and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal, Self, get_args

from pydantic import model_validator

from warpsmith.core.base import Model

Kind = Literal["cpu", "gpu"]
"""Kind of target."""

KINDS: tuple[Kind, ...] = get_args(Kind)


class Readiness(StrEnum):
    """Readiness of this machine for the optimization loop."""

    READY = "Ready"
    GAPS = "Ready with gaps"
    NOT_READY = "Not ready"


class DoctorRow(Model):
    """Result of one check."""

    name: str
    """Subject of the check."""
    state: Literal["ok", "gap", "missing"]
    """Outcome. `missing`: the loop would use it on this machine; `gap`: it is absent, and the loop does not
    need it."""
    found: str
    """Observation: what the check found, or what is absent."""
    means: str = ""
    """Effect on commands."""
    fix: str = ""
    """Remedy; empty if nothing needs to be done, or if `found` states it."""
    stops: tuple[Kind, ...] = ()
    """Kinds of target that cannot be judged because of it."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.state == "ok" and (self.fix or self.stops):
            raise ValueError("a row with the state `ok` must have no `fix` and no `stops`")
        return self


class DoctorGroup(Model):
    """Rows of related checks."""

    name: str
    """Subject of the group."""
    rows: tuple[DoctorRow, ...]
    """Rows in the order of the checks."""


class DoctorReport(Model):
    """All rows, and the answer."""

    answer: Readiness
    """Answer of the doctor."""
    judges: tuple[Kind, ...]
    """The kinds of target that can be judged on this machine."""
    first: str | None
    """First thing to do if the machine is not ready."""
    groups: tuple[DoctorGroup, ...]
    """Rows by group."""

    @classmethod
    def of(cls, groups: Iterable[DoctorGroup]) -> Self:
        """Build the report that follows from these rows."""
        groups = tuple(groups)
        rows = [row for group in groups for row in group.rows]
        judges = tuple(kind for kind in KINDS if not any(kind in row.stops for row in rows))
        worst = None if judges else max(rows, key=lambda row: (len(row.stops), row.state == "missing"))
        if worst:
            answer = Readiness.NOT_READY
        else:
            answer = Readiness.GAPS if any(row.state == "missing" for row in rows) else Readiness.READY
        return cls(answer=answer, judges=judges, first=worst and (worst.fix or worst.found), groups=groups)
