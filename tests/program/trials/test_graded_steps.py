"""Graded steps: an edit that computes less once it is timed."""

from __future__ import annotations

import pytest

from warpsmith.program.models import TensorSummary
from warpsmith.program.trials.graded_steps import (
    COUNT,
    GradedStep,
    check_graded_steps,
    draw_later_number,
    draw_numbers,
)

OTHER = "step 70 returns other values than the original"
MOVES = {"weight": 0.1, "bias": 0.02}


def step(value: float | TensorSummary = 2.0, **movement: float) -> GradedStep:
    return GradedStep({"value": value}, {**MOVES, **movement})


def failures(original: GradedStep, edited: GradedStep, early: float = 4.0) -> list[str]:
    return [c.detail for c in check_graded_steps([(70, original, edited)], {"value": early}) if not c.passed]


def test_numbers_are_drawn_among_the_timed_steps() -> None:
    assert len({tuple(draw_numbers(100, 1000)) for _ in range(5)}) > 1
    numbers = draw_numbers(100, 1000)
    assert numbers == sorted(numbers)
    assert len(numbers) == COUNT
    assert 100 <= numbers[0] <= numbers[-1] < 1100
    assert draw_numbers(5, 2) == [5, 6]


def test_a_later_step_is_within_steps_and_seconds() -> None:
    assert draw_later_number(30, 60.0) == 30
    short = {draw_later_number(30, 1.0) for _ in range(200)}
    assert min(short) >= 30
    assert 35 < max(short) <= 40
    assert max(draw_later_number(30, 1e-4) for _ in range(200)) > 130


def test_honest_runs_drift_apart() -> None:
    assert not failures(step(), step(2.2, weight=0.07, bias=0.05))
    assert not failures(step(1e-3), step(5e-3))  # of a loss that was 4
    assert not check_graded_steps([], {})


def test_training_that_stops() -> None:
    (movement,) = failures(step(), step(weight=0.0, bias=0.0))
    assert movement.endswith("moves the parameters by 0, the original's by 0.102")
    (value,) = failures(step(0.5), step(2.0))
    assert value == "step 70, which was timed: value is 2, the original's 0.5"


def test_a_parameter_that_stops() -> None:
    (movement,) = failures(step(), step(bias=1e-4))
    assert "moves bias by 0.0001, the original's by 0.02" in movement


def test_a_program_without_training_may_not_begin_to_train() -> None:
    still = step(weight=0.0, bias=0.0)
    assert not failures(still, still)
    assert failures(still, step())


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_values_that_are_not_finite(value: float) -> None:
    assert failures(step(), step(value))


def test_other_values_and_tensors() -> None:
    assert failures(step(), GradedStep({"value.0": 2.0}, MOVES)) == [
        "step 70 returns other values than the original"
    ]

    def tensor(norm: float | None) -> TensorSummary:
        return TensorSummary(shape=(3,), dtype="float32", norm=norm, mean=0.0, finite=norm is not None)

    assert not failures(step(tensor(2.0)), step(tensor(2.1)))
    assert failures(step(tensor(2.0)), step(tensor(None)))
