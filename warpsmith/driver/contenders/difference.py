"""Difference between contenders: another hypothesis with another prediction, and another source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from warpsmith.campaign.history.fingerprints import source_fingerprint
from warpsmith.core.campaign import Plan
from warpsmith.errors import Misuse
from warpsmith.languages.base import Language


def refuse_equal_plan(plan: Plan, others: Sequence[Plan]) -> None:
    """Refuse a plan with the hypothesis of another contender, or with its predicted change.

    Raises:
        Misuse: the plan equals one of `others`, which are those of contenders 1, 2 and so on.
    """
    for number, other in enumerate(others, start=1):
        if equal := _equal_part(plan, other):
            raise Misuse(
                f"The {equal} is that of contender {number} of this round: {other.hypothesis.rstrip('.')}."
                " Plan another change, which another metric or another amount of it will show."
            )


def is_new_plan(plan: Plan, others: Sequence[Plan]) -> bool:
    """Return True if a plan differs from all others as contenders must."""
    return not any(_equal_part(plan, other) for other in others)


def list_equal_sources(language: Language, sources: Mapping[int, Path]) -> dict[int, int]:
    """Map each contender whose source, without comments and layout, an earlier one has to that earlier one."""
    first: dict[str, int] = {}
    marks = {number: source_fingerprint(language, path) for number, path in sorted(sources.items())}
    return {number: first[mark] for number, mark in marks.items() if first.setdefault(mark, number) != number}


def _equal_part(plan: Plan, other: Plan) -> str:
    if _words(plan.hypothesis) == _words(other.hypothesis):
        return "hypothesis"
    same = _prediction(plan) == _prediction(other)
    return "predicted change" if same else ""


def _prediction(plan: Plan) -> tuple[str, float, float]:
    return plan.metric, plan.expected_change, plan.predicted_gain


def _words(text: str) -> list[str]:
    return text.lower().rstrip(".").split()
