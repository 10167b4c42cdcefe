"""Contenders differ in hypothesis, prediction and source."""

from __future__ import annotations

from pathlib import Path

import pytest
from campaign_kit import TOY, plan

from warpsmith.driver.contenders.difference import is_new_plan, list_equal_sources, refuse_equal_plan
from warpsmith.errors import Misuse

FIRST = plan(hypothesis="Wider loads make it faster.", expected_change=15)


@pytest.mark.parametrize(
    ("changes", "equal"),
    [
        ({"hypothesis": "wider  loads make it faster", "expected_change": 3}, "hypothesis"),
        ({"hypothesis": "Fewer threads make it faster.", "expected_change": 15}, "predicted change"),
    ],
)
def test_an_equal_plan_is_refused_with_the_other_ones_number(changes: dict[str, object], equal: str):
    other = plan(hypothesis="Another way makes it faster.", expected_change=9)
    with pytest.raises(Misuse, match=f"{equal} is that of contender 2 of this round: Wider loads"):
        refuse_equal_plan(plan(**changes), [other, FIRST])
    assert not is_new_plan(plan(**changes), [other, FIRST])


@pytest.mark.parametrize("changes", [{"expected_change": 16}, {"metric": "time_us"}, {"predicted_gain": 0.3}])
def test_another_prediction_of_another_hypothesis_is_new(changes: dict[str, object]):
    other = plan(**{"hypothesis": "Fewer threads make it faster.", **changes})
    refuse_equal_plan(other, [FIRST])
    assert is_new_plan(other, [FIRST])


def test_layout_makes_no_new_source(tmp_path: Path):
    sources = {}
    for number, text in {1: "a b", 2: "c", 3: "ab\n", 4: "a  b"}.items():
        sources[number] = tmp_path / f"{number}.toy"
        sources[number].write_text(text)
    assert list_equal_sources(TOY, sources) == {3: 1, 4: 1}
