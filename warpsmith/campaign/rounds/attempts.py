"""Attempts: versions that did not build, so that no round is spent on them.

An attempt ends before anything of the version runs, so it tells nothing but the compiler's errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from warpsmith.campaign.history import records
from warpsmith.campaign.history.solutions import Solution
from warpsmith.core.evaluation import Evaluation, Status, Verdict
from warpsmith.core.text import to_one_line

MOST_ATTEMPTS: Final = 5
"""Attempts in a round; the next version that does not build is the round's verdict. Chosen: a typo or a wrong
signature takes one or two, and an agent that needs more should plan another change."""

_STEPS = {"lint", "build"}
"""Steps of the gate that run nothing of the version."""


def is_attempt(evaluation: Evaluation, earlier: int) -> bool:
    """Return True if a judgement costs an attempt and no round; `earlier` is the number of attempts before it."""
    built = any(step.name not in _STEPS for step in evaluation.steps)
    failed = evaluation.decision.verdict is Verdict.ROLLBACK and evaluation.status is Status.COMPILE_ERROR
    return failed and not built and earlier < MOST_ATTEMPTS


def is_unchanged(solution: Solution | None, attempts: Sequence[Evaluation]) -> bool:
    """Return True if the version's file is still the one of the last attempt."""
    return bool(
        attempts
        and solution is not None
        and records.has_content(solution.path, attempts[-1].provenance.solution_sha256)
    )


def describe_attempts(count: int) -> str:
    """Describe the number of attempts, and what to do."""
    left = MOST_ATTEMPTS - count
    after = f"{left} more cost no round" if left else "the next failure to build is the round's verdict"
    return (
        f"Attempt {count} of {MOST_ATTEMPTS} did not build, and no round is spent: fix the same version"
        f" and judge it again; {after}."
    )


def last_error(attempts: Sequence[Evaluation]) -> str:
    """Return the compiler's error of the last attempt in one line."""
    last = attempts[-1]
    text = next((result.message for result in last.results if result.message), last.decision.reason)
    return to_one_line(text.replace("```", ""))
