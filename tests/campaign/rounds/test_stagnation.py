"""Stagnation: two rollbacks ask for a review, three rounds without progress force a change."""

from __future__ import annotations

import pytest
from campaign_kit import plan, review

from warpsmith.campaign.rounds import stagnation
from warpsmith.core.campaign import Movement, RoundOutcome, RoundRecord, Selection
from warpsmith.core.evaluation import Decision, Evaluation, Verdict
from warpsmith.errors import Misuse

A, N, R = Verdict.ACCEPT, Verdict.ACCEPT_WITH_NOTE, Verdict.ROLLBACK


def tried(*rounds: tuple[str, str]) -> list[RoundRecord]:
    """Records of which only category and language matter."""
    return [
        RoundRecord.model_construct(
            plan=plan(category), selection=Selection(language=language, because="It is simple.")
        )
        for category, language in rounds
    ]


@pytest.mark.parametrize(
    ("verdicts", "rollbacks", "not_improving"),
    [([], 0, 0), ([A], 0, 0), ([A, R], 1, 1), ([A, R, R], 2, 2), ([A, R, R, R], 3, 3), ([A, R, R, N], 0, 0)],
)
def test_assessed(verdicts: list[Verdict], rollbacks: int, not_improving: int) -> None:
    found = stagnation.assess_stagnation(verdicts)
    assert (found.rollbacks_in_a_row, found.not_improving) == (rollbacks, not_improving)
    assert found.review == (rollbacks >= 2)
    assert found.change_forced == (not_improving >= 3)


TOY = Selection(language="toy", because="It is simple.")
OTHER = Selection(language="other", because="It is simple.")


def test_review_wants_three_names_of_more_than_one_kind() -> None:
    now, rounds = stagnation.assess_stagnation([A, R, R]), tried(("memory", "toy"), ("memory", "toy"))
    for given, message in (
        (review()[:2], "names 2"),
        ((review()[0],) * 3, "names 1"),
        (review("memory", "memory"), "All directions .* `memory`"),
        (review("compute", "memory"), "first direction, of `compute`"),
    ):
        with pytest.raises(Misuse, match=message):
            stagnation.refuse_plan(now, rounds, plan("memory", review=given), TOY)
    stagnation.refuse_plan(now, rounds, plan("memory", review=review()), TOY)


def test_change_of_category_or_language_is_forced() -> None:
    now = stagnation.assess_stagnation([A, R, R, R])
    rounds = tried(("launch", "toy"), ("memory", "toy"), ("compute", "toy"), ("memory", "toy"))
    with pytest.raises(Misuse, match="3 rounds of memory, compute in toy"):
        stagnation.refuse_plan(now, rounds, plan("memory", review=review()), TOY)
    stagnation.refuse_plan(now, rounds, plan("memory", review=review()), OTHER)
    stagnation.refuse_plan(now, rounds, plan("launch", review=review("launch")), TOY)


def test_baseline_is_no_plan() -> None:
    with pytest.raises(Misuse, match="`baseline` is only for the first version"):
        stagnation.refuse_plan(stagnation.assess_stagnation([A]), [], plan("baseline"), TOY)


@pytest.mark.parametrize(
    ("verdicts", "moved", "is_vain"),
    [
        ((R,), (False,), False),
        ((R, R), (False, None), True),
        ((R, R), (False, True), False),
        ((R, A), (None, None), False),
    ],
)
def test_entries_that_are_cited_in_vain(
    verdicts: tuple[Verdict, ...], moved: tuple[bool | None, ...], is_vain: bool
) -> None:
    rounds = [
        RoundRecord.model_construct(
            round=number,
            plan=plan("memory", entries=("wide-loads",)),
            evaluation=Evaluation.model_construct(decision=Decision.model_construct(verdict=verdict)),
            outcome=RoundOutcome.model_construct(
                movement=Movement(metric="dram_pct", before=1, after=2, predicted=5, as_predicted=as_planned),
            ),
        )
        for number, (verdict, as_planned) in enumerate(zip(verdicts, moved, strict=True), 2)
    ]
    sentences = stagnation.vain_citations(rounds)
    assert bool(sentences) == is_vain
    if is_vain:
        (sentence,) = sentences
        assert sentence.startswith("`wide-loads` was cited in rounds 2, 3:")
        assert "dram_pct did not move" in sentence
