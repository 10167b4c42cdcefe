"""Which contenders are timed again, and on which device each is timed."""

from __future__ import annotations

import pytest

from warpsmith.core.campaign import ScreenedSpeedup
from warpsmith.core.evaluation import Interval
from warpsmith.driver.contenders.choose import MOST_RACED, choose_raced, share_out


def times(low: float, speedup: float, high: float) -> ScreenedSpeedup:
    return ScreenedSpeedup(speedup=speedup, interval=Interval(low=low, high=high))


def test_those_that_reach_into_the_fastest_one():
    screened = {1: times(1.0, 1.1, 1.19), 2: times(1.2, 1.3, 1.4), 3: times(1.1, 1.15, 1.2)}
    assert choose_raced(screened) == [2, 3]


def test_a_clear_one_is_alone_and_there_are_never_too_many():
    assert choose_raced({1: times(1.0, 1.1, 1.19), 2: times(1.2, 1.3, 1.4)}) == [2]
    assert choose_raced({number: times(0.5, 1.0, 2.0) for number in range(1, 9)}) == [1, 2, 3]
    assert MOST_RACED == 3
    assert choose_raced({}) == []


@pytest.mark.parametrize(("devices", "shares"), [(1, [[1, 2, 5]]), (2, [[1, 5], [2]]), (4, [[1], [2], [5]])])
def test_devices_take_them_in_turn(devices: int, shares: list[list[int]]):
    assert share_out([1, 2, 5], devices) == shares
