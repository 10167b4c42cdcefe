"""Costs of calls at far shapes, as shorter ones say."""

from __future__ import annotations

from types import SimpleNamespace

import psutil
import pytest
from lab_samples import SQUARE

from warpsmith.lab.gate.call_costs import CallCosts, guess_largest_bytes
from warpsmith.lab.operator import input_rules

QUADRATIC = SQUARE.replace("return x * x", "return (x[:, None] * x[None]).diagonal()")
LENGTH = 1 << 20


def far(file):
    base = file.definition.workloads[0]
    return base.model_copy(update={"name": "far-n", "set": "full", "axes": {"n": LENGTH}})


def slow_at(file, monkeypatch, seconds):
    """Costs where calls at a part of the length take the seconds that a function says, and the parts."""
    parts = []

    def open_session(workload):
        parts.append(LENGTH // workload.axes["n"])
        call = SimpleNamespace(seconds=seconds(parts[-1]), busy=None)
        return SimpleNamespace(fill_inputs=lambda **_: None, time_one_call_cold=lambda _: call)

    costs = CallCosts(file, open_session, "cpu")
    monkeypatch.setattr(costs, "_time_reference", lambda _: input_rules.CALL_START)
    return costs, parts


@pytest.mark.parametrize(
    ("text", "expected"), [(SQUARE, 8 * LENGTH), (QUADRATIC, 8 * LENGTH**2)], ids=["linear", "quadratic"]
)
def test_the_largest_tensor_grows_as_at_short_lengths(workshop, text, expected):
    file = workshop.load("square", text)
    assert guess_largest_bytes(file, far(file)) == pytest.approx(expected)


def test_a_reference_that_needs_more_memory_than_there_is_is_not_called(workshop, monkeypatch):
    file = workshop.load("square", SQUARE)
    costs, parts = slow_at(file, monkeypatch, lambda _: input_rules.CALL_START)
    needed = 8 * LENGTH * input_rules.LIVE_TENSORS / input_rules.MEMORY_SHARE
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=0.9 * needed))
    excess = costs.find_excess(far(file), 1.0)
    assert "its reference would take about" in excess.reason
    assert not excess.in_version
    assert parts == []
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=1.1 * needed))
    assert costs.find_excess(far(file), 1.0) is None


@pytest.mark.parametrize(
    ("seconds", "looks", "is_slow"),
    [
        (lambda part: 1.28 / part, [128], False),
        (lambda part: 0.1 if part == 128 else 0.02, [128, 32], False),
        (lambda part: 0.5 if part > 8 else 0.1, [128, 32, 8], False),
        (lambda part: 15 / part, [128, 32, 8], True),
        (lambda part: 5000 / part**2, [128, 32], True),
        (lambda part: 1000 / part, [128], True),
        (lambda part: 10 / part**2, [128, 8], False),
        (lambda part: 100 / part**2, [128, 8], True),
    ],
    ids=["quick", "short", "shorter", "slow", "quadratic", "very slow", "tiny", "tiny at first"],
)
def test_a_version_that_is_slow_at_a_part_is_called_at_a_longer_one(
    workshop, monkeypatch, seconds, looks, is_slow
):
    file = workshop.load("square", SQUARE)
    costs, parts = slow_at(file, monkeypatch, seconds)
    excess = costs.find_excess(far(file), 1.0)
    assert (excess is not None) == is_slow
    assert excess is None or (excess.in_version and "a call would take about" in excess.reason)
    assert parts == looks
