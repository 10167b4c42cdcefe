"""The red team: what a candidate says of itself, and what the gate did to each.

An attack tries to be accepted without deserving it; a control is honest, however unusual, and must be accepted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from warpsmith.core.base import Minute, Model, Name, Sha256, Slug
from warpsmith.core.evaluation import Status, StepName, Verdict
from warpsmith.core.hardware import Machine
from warpsmith.core.trust import Check

Kind = Literal["attack", "control"]
"""What a candidate is."""

Need = Literal["gpu", "early start", "sanitizer", "isolation"]
"""What a candidate cannot be run without."""

_COMMENT = re.compile(r"(?:#|//) +(\S.*)")
_PAIR = re.compile(r"([a-z]+): +(.*)")
_LISTS = ("caught", "status", "needs")


class Header(Model):
    """What a candidate says of itself, in the comment lines `key: value` that its file starts with."""

    family: str = Field(min_length=1)
    """The class of attack, or what is unusual about a control: `pointer cache`; the key is `class`."""
    kind: Kind
    """Whether it must be caught or accepted."""
    how: str = Field(min_length=1)
    """What it does, in one sentence."""
    caught: tuple[StepName, ...] = ()
    """Steps of the gate, any of which is expected to catch an attack."""
    status: tuple[Status, ...] = ()
    """Statuses, one of which is expected; empty: any."""
    against: str | None = None
    """File beside it that plays the best version so far."""
    needs: tuple[Need, ...] = ()
    """What it cannot be run without."""
    defence: str = ""
    """The single defence that holds it, where there is one."""
    source: str = ""
    """The public case that it stands for."""

    @model_validator(mode="after")
    def _fits_kind(self) -> Self:
        if self.kind == "attack" and not self.caught:
            raise ValueError("an attack says in `caught` which steps are to catch it")
        if self.kind == "control" and (self.caught or self.status):
            raise ValueError("a control is to be accepted: it has neither `caught` nor `status`")
        return self


def header(source: str) -> Header:
    """The header of a candidate's source; a comment line without a key goes on with the line before.

    Raises:
        ValueError: there is none, a key stands twice or is unknown, or a value is no possible one.
    """
    values: dict[str, str] = {}
    key = ""
    for line in source.splitlines():
        comment = _COMMENT.match(line)
        if comment is None:
            break
        pair = _PAIR.fullmatch(comment[1])
        if pair is None and not key:
            break
        if pair is None:
            values[key] += f" {comment[1]}"
            continue
        key = "family" if pair[1] == "class" else pair[1]
        if key in values:
            raise ValueError(f"the key `{pair[1]}` stands twice")
        values[key] = pair[2]
    if not values:
        raise ValueError("it does not start with comment lines `key: value`")
    lists = {name: [part.strip() for part in values[name].split(",")] for name in _LISTS if name in values}
    return Header.model_validate({**values, **lists})


class Outcome(StrEnum):
    """What became of a candidate."""

    CAUGHT = "caught"
    """An attack that was refused."""
    GOT_THROUGH = "got through"
    """An attack that was accepted, or judged right as far as this machine judges it."""
    ACCEPTED = "accepted"
    """A control that was accepted."""
    CORRECT = "judged for correctness only"
    """A control in a language that only interprets here: judged for correctness, never timed."""
    REFUSED = "refused"
    """A control that was refused."""
    NOT_RUN = "not run"
    """This machine lacks what it needs, or what is to catch it."""
    MACHINE_FAILED = "machine failed"
    """The machine failed, or something that the candidate is compared with: nothing is known."""

    @property
    def wrong(self) -> bool:
        """Whether the gate was wrong."""
        return self in (Outcome.GOT_THROUGH, Outcome.REFUSED)


_WRONG = {Status.INCORRECT_NUMERICAL, Status.CACHED_RESULT, Status.NOT_REPRODUCIBLE}
"""What a wrong result is called depends on the call that shows it first, and inputs are random: one is as good."""


class Result(Model):
    """What the gate did to one candidate."""

    definition: Name
    """Operator."""
    file: str
    """The candidate's file in its folder of candidates."""
    sha256: Sha256
    """Hash of the file."""
    definition_sha256: Sha256
    """Hash of the definition."""
    against_sha256: Sha256 | None = None
    """Hash of the file that played the best version so far; null: none did, or it was not kept."""
    header: Header
    """What it says of itself."""
    outcome: Outcome
    """What became of it."""
    target: Slug | None = None
    """The device kind that it was judged on; null where it was not run."""
    step: StepName | None = None
    """The step that refused it."""
    status: Status | None = None
    """The evaluation's status; null where there was none."""
    verdict: Verdict | None = None
    """The evaluation's verdict."""
    message: str = ""
    """Why it was refused or not run, in one sentence."""
    seconds: float = Field(default=0.0, ge=0)
    """Wall time of the judgement."""
    without: tuple[str, ...] = ()
    """Names of the defences that were not in force."""

    @property
    def deviates(self) -> bool:
        """Whether an attack was caught, but not as its header says."""
        if self.outcome is not Outcome.CAUGHT:
            return False
        known = set(self.header.status)
        if known & _WRONG:
            known |= _WRONG
        return self.step not in self.header.caught or bool(known and self.status not in known)


class RedTeamReport(Model):
    """One run of the red team against the gate."""

    gate_version: int
    """The rules that were attacked."""
    lab_sha256: Sha256
    """Hash of the lab's own code."""
    measured: Minute
    """When, in UTC."""
    machine: Machine
    """Where."""
    results: tuple[Result, ...]
    """One a candidate, in order."""
    not_in_force: tuple[Check, ...] = ()
    """The defences that this machine could not have, each with why."""
    attacks: dict[Outcome, int] = {}
    """How many attacks had each outcome."""
    controls: dict[Outcome, int] = {}
    """How many controls had each outcome."""
    finished: bool = True
    """Whether these are all candidates that were asked for; false: the command is at work, or was ended."""

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if (self.attacks, self.controls) != (count(self.results, "attack"), count(self.results, "control")):
            raise ValueError("the totals are not those of the results")
        return self

    @property
    def wrong(self) -> tuple[Result, ...]:
        """Attacks that got through and controls that were refused."""
        return tuple(result for result in self.results if result.outcome.wrong)

    @property
    def deviations(self) -> tuple[Result, ...]:
        """Attacks that were caught otherwise than their headers say."""
        return tuple(result for result in self.results if result.deviates)

    @property
    def failed(self) -> tuple[Result, ...]:
        """Candidates at which the machine failed."""
        return tuple(result for result in self.results if result.outcome is Outcome.MACHINE_FAILED)


def count(results: Iterable[Result], kind: Kind) -> dict[Outcome, int]:
    """How many candidates of a kind had each outcome."""
    return dict(Counter(result.outcome for result in results if result.header.kind == kind))
