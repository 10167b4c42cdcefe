"""Check: one protection of a verdict, whether it was in force, and the reason if it was not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from pydantic import model_validator

from warpsmith.core.base import Model

MACHINE_IDLE = "machine idle"
"""Name of the check that nobody else uses the device while times are taken."""


class Check(Model):
    """One protection of the gate during one judgement."""

    name: str
    """Object of the check: `files`, `network`, `outputs at the answer`, `memcheck`."""
    ran: bool
    """True if it was in force."""
    how: str
    """Means of the check; if it was not in force, the reason and the remedy."""

    @model_validator(mode="after")
    def _check_how(self) -> Self:
        if not self.how:
            raise ValueError("a check says how it ran, or why it did not")
        return self


def missing(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return the checks that were not in force."""
    return tuple(check for check in checks if not check.ran)


def level(checks: Iterable[Check]) -> str:
    """Return the level of trust: `full`, `reduced`, or `not stated` in records of older gates."""
    stated = tuple(checks)
    if not stated:
        return "not stated"
    return "reduced" if missing(stated) else "full"


def short_text(checks: Iterable[Check]) -> str:
    """Return the level of trust with the names of the missing checks: `reduced, without sanitizers`."""
    stated = tuple(checks)
    names = ", ".join(check.name for check in missing(stated))
    return f"{level(stated)}, without {names}" if names else level(stated)


def full_text(checks: Iterable[Check]) -> str:
    """Return the level of trust with each missing check and its reason: `reduced: sanitizers (no GPU)`."""
    stated = tuple(checks)
    reasons = "; ".join(f"{check.name} ({check.how})" for check in missing(stated))
    return f"{level(stated)}: {reasons}" if reasons else level(stated)


def machine_load(checks: Iterable[Check]) -> str | None:
    """Return the load of the machine when times were taken, in words; None if it was not checked."""
    return next((check.how for check in checks if check.name == MACHINE_IDLE), None)
