"""Times of repeated calls on a loaded machine."""

from __future__ import annotations

import random

import pytest

from warpsmith.core import gate_rules
from warpsmith.lab.gate.calls import repeats
from warpsmith.lab.gate.calls.repeats import RepeatTimes
from warpsmith.lab.timing.session import CallTime


class Scripted:
    """A session whose kernel takes `quick` milliseconds on the last call's inputs and `slow` on others.

    The load may stretch each time."""

    def __init__(self, slow: float, quick: float, load: float) -> None:
        self.slow, self.quick, self.load, self.tells = slow, quick, load, False
        self.chance, self.drawn, self.calls = random.Random(7), [{"x": 0}], 0
        self.inputs, self._last = self, None

    def draw(self, quick: bool) -> dict[str, int]:
        return {"x": self.chance.getrandbits(60)}

    def fill_inputs(self, quick: bool) -> None:
        self.drawn = [self.draw(quick)]

    def write_inputs(self, slot: int, values: dict[str, int]) -> None:
        self.drawn[slot] = values

    def call_side(self, name: str) -> None:
        self._last = self.drawn[0]["x"]

    def time_one_call_cold(self, name: str) -> CallTime:
        self.calls += 1
        seconds = self.quick if self.drawn[0]["x"] == self._last else self.slow
        self.call_side(name)
        return CallTime(
            self._stretched(seconds) + self.time_hand_over(name).seconds, seconds + 0.1 if self.tells else None
        )

    def time_hand_over(self, name: str) -> CallTime:
        return CallTime(self._stretched(0.1), 0.1 if self.tells else None)

    def _stretched(self, seconds: float) -> float:
        return seconds * (1 + self.load * self.chance.random() ** 2)


class Seldom(Scripted):
    """One call in five is undisturbed; the others take three times as long."""

    def __init__(self, seed: int) -> None:
        super().__init__(1.0, 1.0, 0.0)
        self.load_chance = random.Random(seed)

    def _stretched(self, seconds: float) -> float:
        return seconds * (1 if seconds < 1.0 or self.load_chance.random() < 1 / 5 else 3)


@pytest.mark.parametrize("load", [0.0, 1.0, 10.0])
@pytest.mark.parametrize(("quick", "kept"), [(1.0, False), (0.9, False), (0.2, True), (0.0, True)])
def test_load_hides_no_kept_result_and_makes_none(quick, kept, load):
    one = Scripted(1.0, quick, load)
    assert (repeats.repeat_time_share(one, same=("x",)) < 0.5) is kept
    least, some, most = gate_rules.REPEAT_LOOKS
    assert one.calls == 6 * most if kept else 6 * least <= one.calls <= 6 * some


def test_chance_makes_no_kept_result(monkeypatch):
    def kept() -> int:
        return sum(
            repeats.repeat_time_share(Seldom(seed), same=("x",)) < gate_rules.KEPT_SHARE for seed in range(300)
        )

    assert kept() == 0
    least, some, _ = gate_rules.REPEAT_LOOKS
    monkeypatch.setattr(gate_rules, "REPEAT_LOOKS", (least, some, some))
    assert kept() > 0, "the draws are such that fewer looks are fooled"


def took(*seconds: float, busy: float | None = None) -> list[CallTime]:
    return [CallTime(each, busy) for each in seconds]


def test_a_hand_over_that_load_stretched_leaves_a_call_its_time():
    assert RepeatTimes(took(1.1, 1.1), took(1.1, 1.1), took(0.1, 5.0)).share == pytest.approx(1)


def test_a_kept_result_shows_though_load_stretched_every_repeated_call():
    class Stretched(Scripted):
        """Every repeated call waits for a core as long as a fresh one computes."""

        def time_one_call_cold(self, name: str) -> CallTime:
            waits = 1.0 if self.drawn[0]["x"] == self._last else 0.0
            found = super().time_one_call_cold(name)
            return found._replace(seconds=found.seconds + waits)

    one = Stretched(1.0, 0.1, 0.0)
    assert repeats.repeat_time_share(one, same=("x",)) > 1, "the grader's clock alone does not tell"
    one.tells = True
    assert repeats.repeat_time_share(one, same=("x",)) == pytest.approx(0.1)


def test_a_core_that_was_had_for_no_time_tells_nothing():
    short = took(1.0, busy=2e-4), took(1.0, busy=1e-5), took(0.0, busy=1e-5)
    assert RepeatTimes(*short).share == pytest.approx(1)


def test_a_core_that_was_had_for_less_than_a_millisecond_tells():
    """Times of a softmax of 9 rows of 16384 that keeps its result, while two programs are busy."""
    fresh, repeated, beside = took(1.165e-3, busy=9.2e-4), took(7.7e-4, busy=4.1e-4), took(1.6e-4, busy=6e-5)
    assert RepeatTimes(fresh, repeated, beside).share < 0.5


BESIDE = took(1e-4, busy=5e-5)
"""An empty message."""


def wait_and_use(*busy: float) -> list[CallTime]:
    """Calls that sleep for 2 ms and have a core for these seconds besides the hand-over."""
    return [CallTime(2.2e-3, each + 5e-5) for each in busy]


def test_one_call_on_a_faster_core_makes_no_kept_result():
    usual, fast = [5e-4] * 59, [2e-4]
    assert RepeatTimes(
        wait_and_use(*usual, *fast), wait_and_use(*usual, *usual[:1]), BESIDE
    ).share == pytest.approx(1)
    assert RepeatTimes(
        wait_and_use(*usual, *usual[:1]), wait_and_use(*usual, *fast), BESIDE
    ).share == pytest.approx(1)


def test_one_call_on_a_faster_core_hides_no_kept_result():
    fresh, repeated = [1e-3] * 59 + [3e-4], [3e-4] * 60
    assert RepeatTimes(wait_and_use(*fresh), wait_and_use(*repeated), BESIDE).share == pytest.approx(0.3)


def test_a_hand_over_that_load_stretched_hides_no_kept_result():
    beside = [*BESIDE, *BESIDE, CallTime(5e-3, 4e-3)]
    assert RepeatTimes(wait_and_use(1e-3), wait_and_use(1e-4), beside).share == pytest.approx(0.1)


@pytest.mark.parametrize("fast", [0.05, 0.25, 0.5, 0.75])
def test_a_core_that_is_fast_by_chance_makes_no_kept_result(fast):
    """A part of all calls takes 35 % of the time, of fresh ones and of repeated ones alike."""
    for seed in range(100):
        chance = random.Random(seed)
        fresh, repeated = (
            wait_and_use(*(1e-3 * (0.35 if chance.random() < fast else 1.0) for _ in range(60))) for _ in range(2)
        )
        assert RepeatTimes(fresh, repeated, BESIDE).share >= gate_rules.KEPT_SHARE, seed


def test_a_kept_result_shows_though_both_calls_sleep():
    assert RepeatTimes(wait_and_use(5e-4), wait_and_use(1e-4), BESIDE).share == pytest.approx(0.2)


def test_a_result_that_is_kept_in_a_few_calls_shows_on_an_idle_machine():
    repeated = took(1.1e-3, busy=1e-3) * 55 + took(3e-4, busy=2e-4) * 5
    assert RepeatTimes(took(1.1e-3, busy=1e-3) * 60, repeated, BESIDE).share == pytest.approx(0.2)


@pytest.mark.parametrize("wasted", [1e-3, 1e-2])
def test_a_result_that_is_kept_in_a_third_of_the_calls_shows_by_core_time(wasted):
    """The other repeated calls take as long as fresh ones, or waste time to make up for it."""
    repeated = wait_and_use(*[1e-4, wasted, wasted] * 20)
    assert RepeatTimes(wait_and_use(*[1e-3] * 60), repeated, BESIDE).share == pytest.approx(0.1**0.5)
