"""Check: one thing that a verdict rests on, whether it ran, and what it lacks where it could not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from pydantic import model_validator

from warpsmith.core.base import Model


class Check(Model):
    """One defence of the gate during one judgement."""

    name: str
    """What was checked or held: `files`, `network`, `outputs at the answer`, `memcheck`."""
    ran: bool
    """Whether it was in force."""
    how: str
    """By what means; where it was not in force, why, and what would bring it."""

    @model_validator(mode="after")
    def _says_how(self) -> Self:
        if not self.how:
            raise ValueError("a check says how it ran, or why it did not")
        return self


def missing(checks: Iterable[Check]) -> tuple[Check, ...]:
    """What was not in force."""
    return tuple(check for check in checks if not check.ran)


def level(checks: Iterable[Check]) -> str:
    """One word for people: `full`, `reduced`, or `not stated` in records of gates that did not say."""
    stated = tuple(checks)
    if not stated:
        return "not stated"
    return "reduced" if missing(stated) else "full"
