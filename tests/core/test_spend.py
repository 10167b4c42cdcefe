"""Spend: sums of what agents cost, and money as people read it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from warpsmith.core.spend import Spend, Spent, format_usd


def spend(**changes: Any) -> Spend:
    told = {
        "phase": "DESIGN", "agent": "kernel-designer", "models": ["m"], "turns": 2, "input_tokens": 10,
        "cache_write_tokens": 20, "cache_read_tokens": 30, "output_tokens": 5, "usd": 0.25, "seconds": 1.5,
        "ended": "done",
    }  # fmt: skip
    return Spend.model_validate(told | changes)


@pytest.mark.parametrize(
    ("usd", "text"),
    [(0, "$0.00"), (12.345, "$12.35"), (0.1, "$0.10"), (0.0996, "$0.10"), (0.0784, "$0.078"), (0.0031, "$0.0031")],
)
def test_dollars(usd: float, text: str):
    assert format_usd(usd) == text


def test_a_sum():
    total = Spent.of([spend(), spend(usd=0.05, agent="reviewer")])
    assert (total.queries, total.turns, total.output_tokens, total.seconds) == (2, 4, 10, 3.0)
    assert total.text == "$0.30 in 2 queries, 120 tokens read and 10 written"
    assert Spent.of([spend()]).text.startswith("$0.25 in 1 query, 60 tokens read")


def test_a_query_that_did_not_tell_makes_the_sum_a_lower_bound():
    total = Spent.of([spend(), spend(usd=None, ended="died")])
    assert (total.untold, total.cost) == (1, "at least $0.25")


def test_nothing_is_a_sum_too():
    assert Spent.of([]).cost == "$0.00"


@pytest.mark.parametrize("changes", [{"usd": -0.1}, {"ended": "well"}, {"phase": "VERIFY"}, {"turns": -1}])
def test_what_cannot_be_is_refused(changes: dict[str, Any]):
    with pytest.raises(ValidationError):
        spend(**changes)
