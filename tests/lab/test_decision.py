from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpsmith.core.campaign import Thresholds
from warpsmith.core.evaluation import Aggregate, Comparison, Interval, Verdict
from warpsmith.lab import decision

FLOOR = 0.01


def aggregate(value, low, high, worst=None, name="b"):
    return Aggregate(
        against="best",
        speedup=value,
        interval=Interval(low=low, high=high),
        worst_workload=name,
        worst=worst or value,
    )


def comparison(value, low, high):
    return Comparison(
        against="best", other_seconds=1e-3, speedup=value, interval=Interval(low=low, high=high), pairs=10
    )


def decide(whole, a=(1.2, 1.1, 1.3), b=(1.2, 1.1, 1.3), repeats=0, thresholds=None):
    comparisons = {"a": comparison(*a), "b": comparison(*b)}
    return decision.decide(whole, comparisons, FLOOR, thresholds or Thresholds(), repeats)


GAIN = aggregate(1.2, 1.15, 1.25)
CASES = {
    "a clear gain": (GAIN, {}, True, "ACCEPT", False),
    "a gain with a workload down within the limit": (
        aggregate(1.2, 1.15, 1.25, 0.97), {"b": (0.97, 0.96, 0.98)}, True, "ACCEPT_WITH_NOTE", False),
    "a gain with a workload down by noise": (
        aggregate(1.2, 1.15, 1.25, 0.99), {"b": (0.99, 0.96, 1.02)}, True, "ACCEPT", False),
    "a clear regression": (
        aggregate(1.2, 1.15, 1.25, 0.94), {"b": (0.94, 0.93, 0.95)}, True, "ROLLBACK", False),
    "a regression exactly at the limit": (
        aggregate(1.2, 1.15, 1.25, 0.95), {"b": (0.95, 0.94, 0.96)}, True, "ROLLBACK", False),
    "an unclear regression": (
        aggregate(1.2, 1.15, 1.25, 0.94), {"b": (0.94, 0.80, 1.1)}, False, "ROLLBACK", False),
    "an unclear regression in the end": (
        aggregate(1.2, 1.15, 1.25, 0.94), {"b": (0.94, 0.80, 1.1), "repeats": 3}, True, "ROLLBACK", False),
    "slower": (aggregate(0.98, 0.97, 0.99), {}, True, "ROLLBACK", False),
    "within the noise": (aggregate(1.002, 0.999, 1.008), {}, True, "ROLLBACK", False),
    "not clear of the noise": (aggregate(1.03, 1.005, 1.06), {}, False, "ROLLBACK", False),
    "ambiguous": (aggregate(1.03, 1.005, 1.06), {"repeats": 3}, True, "ROLLBACK", True),
    "a small gain": (aggregate(1.015, 1.012, 1.018), {}, False, "ROLLBACK", False),
    "a small gain repeated": (aggregate(1.015, 1.012, 1.018), {"repeats": 1}, True, "ACCEPT", False),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_table(case):
    whole, changes, settled, verdict, ambiguous = CASES[case]
    found = decide(whole, **changes)
    assert (found.settled, found.decision.verdict, found.decision.ambiguous) == (settled, verdict, ambiguous)
    assert found.decision.against == "best"
    assert found.decision.repeats == changes.get("repeats", 0)


def test_reasons_hold_the_numbers():
    assert decide(GAIN).decision.reason.startswith("+20.0% [+15.0%, +25.0%] over the best version")
    reason = decide(aggregate(1.2, 1.15, 1.25, 0.97), b=(0.97, 0.96, 0.98)).decision.reason
    assert reason.endswith("slower within the limit: b (b -3.0%)")
    assert decide(aggregate(1.2, 1.15, 1.25, 0.9), b=(0.9, 0.8, 0.95)).decision.reason.endswith("but b -10.0%")


def test_the_first_correct_version_is_accepted():
    found = decision.baseline()
    assert found.verdict is Verdict.ACCEPT
    assert found.against is None


ratios = st.floats(0.2, 5)


@given(value=ratios, bounds=st.tuples(ratios, ratios), worst=st.floats(0.2, 0.95), repeats=st.integers(0, 5))
def test_a_workload_that_is_down_is_never_accepted(value, bounds, worst, repeats):
    low, high = sorted(bounds)
    found = decide(aggregate(value, low, high, worst), b=(worst, low, high), repeats=repeats)
    assert not found.decision.verdict.accepted


@given(value=ratios, bounds=st.tuples(ratios, ratios), worst=ratios, repeats=st.integers(0, 5))
def test_what_is_accepted_is_settled_and_clear_of_the_floor(value, bounds, worst, repeats):
    low, high = sorted(bounds)
    found = decide(aggregate(value, low, high, worst), b=(worst, low, high), repeats=repeats)
    if found.decision.verdict.accepted:
        assert found.settled
        assert low > 1 + FLOOR
        assert not found.decision.ambiguous
    if repeats >= Thresholds().max_repeats:
        assert found.settled
