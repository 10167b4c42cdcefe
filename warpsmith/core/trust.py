"""Check: one protection of a verdict, whether it was in force, and the reason if it was not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from pydantic import model_validator

from warpsmith.core.base import Model


class Check(Model):
    """One protection of the gate during one judgement."""

    name: str
    """Object of the check: `files`, `network`, `outputs at the answer`, `memcheck`."""
    ran: bool
    """Whether it was in force."""
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
