"""Stages of a step: what they count, and that no second counts twice."""

from __future__ import annotations

from contextlib import suppress

import pytest

from warpsmith.lab.timing import stages
from warpsmith.lab.timing.stages import collect_stages, stage


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still until its only element is changed."""
    reading = [0.0]
    monkeypatch.setattr(stages.time, "monotonic", lambda: reading[0])
    return reading


def test_a_stage_within_another_one_interrupts_it(now: list[float]) -> None:
    with collect_stages() as seconds:
        now[0] += 100  # in no stage
        with stage("version"):
            now[0] += 1
            with stage("reference"):
                now[0] += 10
            now[0] += 2
        with suppress(ValueError), stage("grading"):
            now[0] += 5
            raise ValueError
        with stage("reference"):
            now[0] += 20
    assert seconds == {"version": 3.0, "reference": 30.0, "grading": 5.0}


def test_stages_of_another_step_count_there(now: list[float]) -> None:
    with stage("inputs"):
        now[0] += 1
    with collect_stages() as first, stage("inputs"):
        now[0] += 2
    with collect_stages() as second, stage("inputs"):
        now[0] += 4
    assert (first, second) == ({"inputs": 2.0}, {"inputs": 4.0})
