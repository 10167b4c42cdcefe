from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from warpsmith.core.trial import ORIGINAL
from warpsmith.errors import MachineLacks
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.program.models import StepsRun
from warpsmith.program.process.program import Program
from warpsmith.program.scripts.command_runner import CommandEnded
from warpsmith.program.trials import graded_steps, pair_timing
from warpsmith.program.trials.pair_timing import ProgramForm

BUDGET = TimingBudget(rounds=6, most=12, seconds=60.0, width=0.01)
SIDES: dict[Path, str] = {}


class Fake:
    """A runner whose steps take what a function of their number says; nothing is run."""

    alive = 0
    most = 2
    length = 10**9
    log: list[tuple[str, int]] = []
    seconds: Mapping[str, Callable[[int], float]] = {}

    def __init__(self, _program: Program, original: Mapping[Path, Path], **_: object) -> None:
        self.side = "edited" if original else ORIGINAL
        self.ran = 0

    def __enter__(self) -> Fake:
        Fake.alive += 1
        return self

    def __exit__(self, *_: object) -> None:
        Fake.alive -= 1

    def start(self) -> None:
        if Fake.alive > self.most:
            raise MachineLacks("the step runs out of memory")

    def run(self, count: int, *, values: bool = True) -> StepsRun:
        if self.ran + count > self.length:
            raise CommandEnded("it ended")
        if not values:
            Fake.log.append((self.side, count))
        took = sum(self.seconds[self.side](self.ran + n) for n in range(count))
        first, self.ran = self.ran, self.ran + count
        losses = tuple({"value": float(first + n)} for n in range(count)) if values else ()
        return StepsRun(first=first, count=count, seconds=took, values=losses)

    def call_ranks(self, task: str) -> list[object]:
        if task == "sketch":
            weight = ["weight", [2], True, [0.1 * self.ran, 0.0], False]
            return [{"parameters": [weight, ["ids", [1], False, [1.0], False]]}]
        assert task == "reserved_memory"
        return [1000 if self.side == ORIGINAL else 600]


@pytest.fixture(autouse=True)
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_timing, "open_runner", Fake)
    Fake.alive, Fake.most, Fake.log, Fake.length = 0, 2, [], 10**9
    Fake.seconds = {ORIGINAL: steady(0.010), "edited": steady(0.005)}
    monkeypatch.setattr(graded_steps, "draw_numbers", lambda *_: [])


def steady(seconds: float, first: float = 0.5) -> Callable[[int], float]:
    """Steps with a slow first and a little of noise."""
    return lambda n: first if n == 0 else seconds * (1 + 0.01 * (n % 3))


def compare(*numbers: int) -> pair_timing.PairResult:
    program = Program(Path("train.py"), "step")
    return pair_timing.time_pair(
        ProgramForm(program), ProgramForm(program, {Path("a"): Path("b")}), BUDGET, lambda _: None, numbers
    )


def test_the_speedup_is_of_steps_alone():
    found = compare()
    assert found.comparison.speedup == pytest.approx(2, rel=0.02)
    assert found.comparison.against == ORIGINAL
    assert found.comparison.interval.low <= found.comparison.speedup <= found.comparison.interval.high
    assert (found.original.first_seconds, found.edited.first_seconds) == (0.5, 0.5)
    assert (found.original.seconds, found.edited.seconds) == pytest.approx((0.010, 0.005), rel=0.02)
    assert (found.original.peak_bytes, found.edited.peak_bytes) == (1000, 600)
    assert found.together


def test_both_run_the_same_steps_and_take_turns_in_going_first():
    found = compare()
    sides = [[count for side, count in Fake.log if side == name] for name in (ORIGINAL, "edited")]
    assert sides[0] == sides[1]
    timed = [side for side, _ in Fake.log[-2 * found.comparison.pairs :]]
    assert set(zip(timed[::2], timed[1::2], strict=True)) == {(ORIGINAL, "edited"), ("edited", ORIGINAL)}


def test_a_batch_is_long_enough_for_the_clock():
    found = compare()
    assert found.original.steps * 0.010 >= pair_timing.BATCH_SECONDS


def test_warming_up_goes_on_while_a_side_gets_faster():
    Fake.seconds = {ORIGINAL: steady(0.01), "edited": lambda n: max(0.04 * 0.9**n, 0.01)}
    found = compare()
    assert found.edited.warm_up > 13
    assert found.comparison.speedup == pytest.approx(1, abs=0.03)
    assert found.original.warm_up == found.edited.warm_up


def test_rounds_end_when_the_interval_is_narrow_and_not_before_the_least():
    assert compare().comparison.pairs == BUDGET.rounds


def test_rounds_end_at_the_most_where_times_are_unsteady():
    jumps = itertools.cycle((0.4, 1.9, 0.7, 1.0, 1.6))
    Fake.seconds = {ORIGINAL: steady(0.1), "edited": lambda n: 0.1 * next(jumps)}
    assert compare().comparison.pairs == BUDGET.most


def test_two_that_do_not_fit_together_take_turns():
    Fake.most = 1
    told: list[str] = []
    program = Program(Path("train.py"), "step")
    found = pair_timing.time_pair(
        ProgramForm(program), ProgramForm(program, {Path("a"): Path("b")}), BUDGET, told.append
    )
    assert not found.together
    assert found.comparison.pairs == pair_timing.TURNS
    assert found.comparison.speedup == pytest.approx(2, rel=0.02)
    assert any("do not fit in memory together" in line for line in told)
    assert Fake.alive == 0


def test_one_that_does_not_fit_alone_is_told():
    Fake.most = 0
    with pytest.raises(MachineLacks, match="out of memory"):
        compare()


@pytest.mark.parametrize("most", [1, 2])
def test_both_sides_are_graded_at_the_same_drawn_steps(monkeypatch: pytest.MonkeyPatch, most: int):
    Fake.most = most
    monkeypatch.setattr(graded_steps, "draw_numbers", lambda first, _: [first + 1, first + 4])
    result = compare()
    assert len(result.graded) == (3 if result.together else 2)
    for number, original, edited in result.graded:
        assert original.values == edited.values == {"value": float(number)}
        assert original.movement == {"weight": pytest.approx(0.1)}
    assert result.comparison.speedup == pytest.approx(2, rel=0.02)


def test_rounds_beyond_the_least_and_a_later_step_are_graded_too(monkeypatch: pytest.MonkeyPatch):
    jumps = itertools.cycle((0.4, 1.9, 0.7, 1.0, 1.6))
    Fake.seconds = {ORIGINAL: steady(0.1), "edited": lambda n: 0.1 * next(jumps)}
    monkeypatch.setattr(graded_steps, "draw_numbers", lambda first, count: [first + count - 1])
    monkeypatch.setattr(graded_steps, "draw_later_number", lambda first, _: first + 90)
    result = compare()
    warm_up, steps = result.original.warm_up, result.original.steps
    timed = [number - warm_up for number, _, _ in result.graded]
    blocks = BUDGET.most // BUDGET.rounds
    assert len(timed) == blocks + 1
    assert timed[0] < BUDGET.rounds * steps <= timed[1]
    assert timed[-1] >= BUDGET.most * steps + 90


@pytest.mark.parametrize("most", [1, 2])
def test_numbers_of_the_edit_are_graded_as_far_as_steps_reach(monkeypatch: pytest.MonkeyPatch, most: int):
    Fake.most = most
    monkeypatch.setattr(graded_steps, "draw_numbers", lambda first, _: [first + 1])
    monkeypatch.setattr(graded_steps, "draw_later_number", lambda first, _: first + 2)
    result = compare(9, 1000, 100_000)
    assert {9, 1000} <= {number for number, _, _ in result.graded} < {*range(999), 1000}
    for number, original, edited in result.graded:
        assert original.values == edited.values == {"value": float(number)}


def test_what_was_graded_before_a_command_ends_counts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(graded_steps, "draw_later_number", lambda first, _: first + 400)
    Fake.length = 300
    result = compare(150, 200)
    assert result.comparison.pairs == BUDGET.rounds
    assert result.original.warm_up + BUDGET.rounds * result.original.steps < 150
    assert {150, 200} <= {number for number, _, _ in result.graded}
