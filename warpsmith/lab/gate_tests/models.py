"""Red team models: headers of attacks and controls, and the outcome of each.

An attack tries to be accepted without deserving it. A control is honest, although unusual, and must be accepted.
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
"""Kind of a case."""

Need = Literal["gpu", "early start", "sanitizer", "isolation"]
"""Condition without which a case is not run."""

_COMMENT = re.compile(r"(?:#|//) +(\S.*)")
_PAIR = re.compile(r"([a-z]+): +(.*)")
_LISTS = ("caught", "status", "needs")


class CaseHeader(Model):
    """Header of a case: the comment lines `key: value` that its file starts with."""

    family: str = Field(min_length=1)
    """Class of attack, or peculiarity of a control, such as `pointer cache`; the key is `class`."""
    kind: Kind
    """`attack` if it must be caught, `control` if it must be accepted."""
    how: str = Field(min_length=1)
    """One sentence that describes what it does."""
    caught: tuple[StepName, ...] = ()
    """Checks of the gate, one of which is expected to catch the attack."""
    status: tuple[Status, ...] = ()
    """Expected statuses, one of which must result; empty: any."""
    against: str | None = None
    """File in the same folder that stands for the best version."""
    needs: tuple[Need, ...] = ()
    """Conditions without which it is not run."""
    defence: str = ""
    """The only defence that catches it, if there is a single one."""
    source: str = ""
    """Public report that it reproduces."""

    @model_validator(mode="after")
    def _fits_kind(self) -> Self:
        if self.kind == "attack" and not self.caught:
            raise ValueError("an attack must name in `caught` the steps that catch it")
        if self.kind == "control" and (self.caught or self.status):
            raise ValueError("a control must be accepted: it has neither `caught` nor `status`")
        return self


def parse_header(source: str) -> CaseHeader:
    """Parse the header of a source; a comment line without a key continues the line before.

    Raises:
        ValueError: there is no header, a key is repeated or unknown, or a value is not allowed.
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
            raise ValueError(f"the key `{pair[1]}` is repeated")
        values[key] = pair[2]
    if not values:
        raise ValueError("it does not start with comment lines `key: value`")
    lists = {name: [part.strip() for part in values[name].split(",")] for name in _LISTS if name in values}
    return CaseHeader.model_validate({**values, **lists})


class CaseOutcome(StrEnum):
    """Outcome of a case."""

    CAUGHT = "caught"
    """An attack was refused."""
    REFUSED_FOR_NOISE = "refused for noise"
    """No check saw an attack; only its time did not clear the noise, as it may on a quieter machine."""
    GOT_THROUGH = "got through"
    """An attack was accepted, or found correct as far as this machine can judge it."""
    ACCEPTED = "accepted"
    """A control was accepted."""
    CORRECT = "judged for correctness only"
    """A control in a language that only interprets here was found correct; it is never timed."""
    REFUSED = "refused"
    """A control was refused."""
    NOT_RUN = "not run"
    """This machine lacks what the case needs, or the check that catches it."""
    MACHINE_FAILED = "machine failed"
    """The machine failed, or a side that the case is compared with; nothing is known."""

    @property
    def wrong(self) -> bool:
        """True if the gate was wrong."""
        return self in (CaseOutcome.GOT_THROUGH, CaseOutcome.REFUSED)


_WRONG_RESULT = {Status.INCORRECT_NUMERICAL, Status.CACHED_RESULT, Status.NOT_REPRODUCIBLE}
"""Equivalent statuses: which of them a wrong result gets depends on the call that shows it first, and inputs are
random."""
_CRASH = "was killed by SIG"
"""Words of a message about a worker that a signal ended: a wrong address may give a wrong result, or that."""


class RedTeamResult(Model):
    """Result of one case."""

    definition: Name
    """Name of the operator."""
    file: str
    """Path of the case in its folder of cases."""
    sha256: Sha256
    """Hash of the file."""
    definition_sha256: Sha256
    """Hash of the definition."""
    against_sha256: Sha256 | None = None
    """Hash of the file that stood for the best version; null if there was none, or if its hash was not
    recorded."""
    header: CaseHeader
    """Header of the case."""
    outcome: CaseOutcome
    """Outcome of the case."""
    target: Slug | None = None
    """Device kind on which it was judged; null if it was not run."""
    step: StepName | None = None
    """Step that refused it."""
    status: Status | None = None
    """Status of the evaluation; null if there was none."""
    verdict: Verdict | None = None
    """Verdict of the evaluation."""
    message: str = ""
    """One sentence that says why it was refused or not run."""
    seconds: float = Field(default=0.0, ge=0)
    """Wall time of the judgement in seconds."""
    without: tuple[str, ...] = ()
    """Names of the defences that were not in force."""

    @property
    def deviates(self) -> bool:
        """True if an attack was refused, but not as its header says."""
        if self.outcome is CaseOutcome.REFUSED_FOR_NOISE:
            return True
        if self.outcome is not CaseOutcome.CAUGHT:
            return False
        expected = set(self.header.status)
        if expected & _WRONG_RESULT:
            expected |= _WRONG_RESULT | ({Status.RUNTIME_ERROR} if _CRASH in self.message else set())
        return self.step not in self.header.caught or bool(expected and self.status not in expected)


class RedTeamReport(Model):
    """One run of the red team against the gate."""

    gate_version: int
    """Version of the gate."""
    lab_sha256: Sha256
    """Hash of the lab's own code."""
    measured: Minute
    """Time of the report, in UTC."""
    machine: Machine
    """Machine of the run."""
    results: tuple[RedTeamResult, ...]
    """One result per case, in order."""
    not_in_force: tuple[Check, ...] = ()
    """Defences that this machine cannot have, each with the reason."""
    attacks: dict[CaseOutcome, int] = {}
    """Number of attacks by outcome."""
    controls: dict[CaseOutcome, int] = {}
    """Number of controls by outcome."""
    poor: bool = Field(default=False, exclude_if=lambda value: not value)
    """True if every definition had two timed sizes and no odd ones, as newcomers write them; absent otherwise."""
    finished: bool = True
    """True if all requested cases are in; false while the command runs, or if it was killed."""

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if (self.attacks, self.controls) != (
            count_outcomes(self.results, "attack"),
            count_outcomes(self.results, "control"),
        ):
            raise ValueError("the totals are not those of the results")
        return self

    @property
    def wrong(self) -> tuple[RedTeamResult, ...]:
        """Results of attacks that got through and controls that were refused."""
        return tuple(result for result in self.results if result.outcome.wrong)

    @property
    def deviations(self) -> tuple[RedTeamResult, ...]:
        """Results of attacks that were refused, but not as their headers say."""
        return tuple(result for result in self.results if result.deviates)

    @property
    def unseen(self) -> tuple[RedTeamResult, ...]:
        """Results of attacks that were refused for noise alone."""
        return tuple(result for result in self.results if result.outcome is CaseOutcome.REFUSED_FOR_NOISE)

    @property
    def failed(self) -> tuple[RedTeamResult, ...]:
        """Results of cases at which the machine failed."""
        return tuple(result for result in self.results if result.outcome is CaseOutcome.MACHINE_FAILED)


def count_outcomes(results: Iterable[RedTeamResult], kind: Kind) -> dict[CaseOutcome, int]:
    """Count the cases of a kind by outcome."""
    return dict(Counter(result.outcome for result in results if result.header.kind == kind))
