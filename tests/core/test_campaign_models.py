"""The campaign's models: what a plan, a lesson and a manifest may say."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from warpsmith.core.campaign import Lesson, Manifest, Plan, Selection, Thresholds
from warpsmith.core.metrics import METRICS


def plan(**changes: Any) -> Plan:
    data = {
        "hypothesis": "Wider loads make it faster.", "category": "memory", "predicted_gain": 0.2,
        "metric": "dram_pct", "expected_change": 15,
    }  # fmt: skip
    return Plan.model_validate(data | changes)


def manifest(**changes: Any) -> Manifest:
    data = {
        "campaign": "norm-cpp-cpu-20261121", "target_op": "norm", "target": "cpu", "target_language": "cpp",
        "created": "2026-11-21 10:00",
    }  # fmt: skip
    return Manifest.model_validate(data | changes)


@pytest.mark.parametrize("metric", METRICS)
def test_a_plan_may_name_every_metric_of_profiles(metric: str):
    assert plan(metric=metric).metric == metric


@pytest.mark.parametrize("metric", ["", "speed", "DRAM_PCT", "dram_pct "])
def test_a_plan_names_no_other_metric(metric: str):
    with pytest.raises(ValidationError, match=r"unknown metric .*known: dram_pct, "):
        plan(metric=metric)


@pytest.mark.parametrize(
    "changes", [{"hypothesis": "faster"}, {"category": "magic"}, {"predicted_gain": -0.6}, {"predicted_gain": 101}]
)
def test_a_plan_is_one_checkable_hypothesis(changes: dict[str, Any]):
    with pytest.raises(ValidationError, match=next(iter(changes))):
        plan(**changes)


def test_a_selection_says_why():
    with pytest.raises(ValidationError, match="because"):
        Selection(language="cpp", because="why not")


@pytest.mark.parametrize("action", ["add", "refine", "refute"])
def test_a_lesson_that_changes_something_names_the_entry(action: str):
    with pytest.raises(ValidationError, match=f"`{action}` needs the entry's id"):
        Lesson(action=action, reason="It held once more here.")
    assert Lesson(action=action, entry="wide-loads").reason == ""


@pytest.mark.parametrize("reason", ["", "no", "123456789"])
def test_nothing_new_needs_a_reason(reason: str):
    with pytest.raises(ValidationError, match="needs a stated reason"):
        Lesson(action="nothing", entry="wide-loads", reason=reason)
    assert Lesson(action="nothing", reason="1234567890").entry is None


@pytest.mark.parametrize("rounds", [0, -1, 120, 1000])
def test_a_campaign_takes_fewer_than_120_rounds(rounds: int):
    with pytest.raises(ValidationError, match="max_iterations"):
        manifest(max_iterations=rounds)


@pytest.mark.parametrize("rounds", [None, 1, 119])
def test_rounds_that_a_campaign_may_take(rounds: int | None):
    assert manifest(max_iterations=rounds).max_iterations == rounds


@pytest.mark.parametrize(
    "changes",
    [
        {"regression": 0}, {"regression": 1}, {"small_gain": 0}, {"small_gain": 1.0}, {"max_repeats": -1},
        {"max_repeats": 21}, {"regression": float("nan")},
    ],
)  # fmt: skip
def test_thresholds_stay_in_range(changes: dict[str, Any]):
    with pytest.raises(ValidationError, match=next(iter(changes))):
        Thresholds(**changes)


def test_a_campaign_decides_by_these_thresholds_by_default():
    assert manifest().thresholds == Thresholds(regression=0.05, small_gain=0.02, max_repeats=3)


@pytest.mark.parametrize(
    "changes",
    [
        {"campaign": "../elsewhere"}, {"campaign": "Norm"}, {"target_op": "norm-2"}, {"target": "a/b"},
        {"created": "2026-11-21T10:00:00"}, {"performance_target": 0}, {"git": "main"}, {"surprise": 1},
        {"objective": "power"},
    ],
)  # fmt: skip
def test_a_manifest_refuses(changes: dict[str, Any]):
    with pytest.raises(ValidationError, match=next(iter(changes))):
        manifest(**changes)


def test_a_manifest_from_before_objectives_is_of_time():
    old = manifest().model_dump(exclude={"objective"})
    assert Manifest.model_validate(old).objective == "time"
    assert manifest().primary_metric == "geometric mean of speedups over the best version"
