"""Stagnation: demands of rounds without progress on the next plan. It never ends a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from warpsmith.core.campaign import Plan, RoundRecord, Selection, Stagnation
from warpsmith.core.evaluation import Verdict
from warpsmith.errors import Misuse

REVIEW_AFTER, CHANGE_AFTER, DIRECTIONS = 2, 3, 3
"""Rollbacks before a review, rounds without a better version before a change, directions in a review."""

VAIN_AFTER = 2
"""Rounds without effect that cite an entry before the next plan is told."""


def assess_stagnation(verdicts: Sequence[Verdict]) -> Stagnation:
    """Assess the verdicts so far, oldest first."""
    newest_first = verdicts[::-1]
    rollbacks = len(list(takewhile(lambda verdict: verdict is Verdict.ROLLBACK, newest_first)))
    not_improving = len(list(takewhile(lambda verdict: not verdict.stands, newest_first)))
    return Stagnation(
        rollbacks_in_a_row=rollbacks,
        not_improving=not_improving,
        review=rollbacks >= REVIEW_AFTER,
        change_forced=not_improving >= CHANGE_AFTER,
    )


def plan_demands(stagnation: Stagnation, rounds: Sequence[RoundRecord]) -> list[str]:
    """List the demands on the next plan, one sentence each.

    Args:
        stagnation: the assessment.
        rounds: the visible rounds that were assessed.
    """
    sentences = []
    if stagnation.review:
        sentences.append(
            f"{stagnation.rollbacks_in_a_row} rollbacks in a row: the plan needs a review of at least"
            f" {DIRECTIONS} directions with different names, not all of one category, the chosen one first."
        )
    if stagnation.change_forced:
        categories, languages = _tried_lately(stagnation, rounds)
        sentences.append(
            f"{stagnation.not_improving} rounds without a better version: choose a category other than"
            f" {', '.join(categories)}, or a language other than {', '.join(languages)}."
        )
    return sentences


def vain_citations(rounds: Sequence[RoundRecord]) -> list[str]:
    """Describe each entry that several rounds cited in vain: none was accepted, and no metric moved as planned."""
    sentences = []
    for entry in dict.fromkeys(entry for record in rounds for entry in record.plan.entries):
        citing = [record for record in rounds if entry in record.plan.entries]
        if len(citing) >= VAIN_AFTER and not any(map(_has_effect, citing)):
            numbers = ", ".join(str(record.round) for record in citing)
            metrics = ", ".join(dict.fromkeys(record.plan.metric for record in citing))
            sentences.append(
                f"`{entry}` was cited in rounds {numbers}: none was accepted, and {metrics} did not move as"
                " planned. Cite it again only for a new reason."
            )
    return sentences


def _has_effect(record: RoundRecord) -> bool:
    """Return True if its version stands, or the metric of its plan moved as planned."""
    movement = record.outcome.movement
    return record.verdict.stands or bool(movement and movement.as_predicted)


def refuse_plan(stagnation: Stagnation, rounds: Sequence[RoundRecord], plan: Plan, selection: Selection) -> None:
    """Refuse a plan that does not meet the demands of stagnation.

    Raises:
        Misuse: the plan lacks something; the message says what.
    """
    if plan.category == "baseline":
        raise Misuse("The category `baseline` is only for the first version; name the kind of change.")
    if stagnation.review:
        _refuse_review(plan)
    if stagnation.change_forced:
        categories, languages = _tried_lately(stagnation, rounds)
        if plan.category in categories and selection.language in languages:
            raise Misuse(
                f"{stagnation.not_improving} rounds of {', '.join(categories)} in {', '.join(languages)} brought"
                " no better version; plan another category, or select another language."
            )


def _refuse_review(plan: Plan) -> None:
    names = {direction.name.strip().lower() for direction in plan.review}
    categories = {direction.category for direction in plan.review}
    if len(names) < DIRECTIONS:
        raise Misuse(
            f"Stagnation asks for a review of at least {DIRECTIONS} different directions;"
            f" the plan names {len(names)}: add --direction 'name|category|expected',"
            " or `review:` to a draft's page."
        )
    if len(categories) == 1:
        raise Misuse(
            f"All directions of the review are of the category `{plan.category}`; add one of another category."
        )
    if plan.review[0].category != plan.category:
        raise Misuse(
            f"The review's first direction, of `{plan.review[0].category}`, must be the one that the plan,"
            f" of `{plan.category}`, follows."
        )


def _tried_lately(stagnation: Stagnation, rounds: Sequence[RoundRecord]) -> tuple[list[str], list[str]]:
    last = rounds[-stagnation.not_improving :]
    categories = dict.fromkeys(record.plan.category for record in last)
    return list(categories), list(dict.fromkeys(record.selection.language for record in last))
