"""Decisions of a map: noise shows nothing, a real lead does, and the fastest of many is timed again."""

from __future__ import annotations

import random

import pytest

from warpsmith.core.evaluation import BEST, TWIN, Status
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.performance_map import decision
from warpsmith.lab.timing import statistics
from warpsmith.lab.timing.samples import Samples
from warpsmith.lab.timing.session import SOLUTION


def noisy(chance, seconds, share=0.02, count=30):
    return [seconds * chance.lognormvariate(0, share) for _ in range(count)]


def second_timing(chance, **seconds):
    samples = Samples(grades=[Grade(Status.PASSED, 0.1, 0.0)])
    for side, value in seconds.items():
        samples.seconds[{"own": SOLUTION, "best": BEST, "twin": TWIN}[side]] = noisy(chance, value)
    return samples


def test_of_many_maps_of_equal_versions_hardly_any_shows_one_faster():
    chance, shapes, wrong = random.Random(7), 8, 0
    for _ in range(40):
        for _ in range(shapes):
            sides = {name: noisy(chance, 1.0) for name in "abcdef"}
            if candidate := decision.fastest_candidate(sides, list("abcdef"), "a", 0.0):
                samples = second_timing(chance, own=1.0, best=1.0, twin=1.0)
                shown = decision.confirm(candidate, samples, decision.cell_confidence(shapes))
                wrong += shown.interval.low > 1
    assert wrong <= 1


def test_a_real_lead_is_found_and_confirmed():
    chance = random.Random(3)
    sides = {"a": noisy(chance, 1.0), "b": noisy(chance, 0.9), "c": noisy(chance, 0.8)}
    assert decision.fastest_candidate(sides, ["a", "b", "c"], "a", 0.03) == "c"
    assert decision.fastest_candidate(sides, ["a", "b"], "a", 0.03) == "b"  # one that failed is no candidate
    assert decision.fastest_candidate(sides, ["a", "b", "c"], "a", 0.3) == ""
    shown = decision.confirm("c", second_timing(chance, own=0.8, best=1.0, twin=1.0), 0.999)
    assert shown.interval.low > 1.2
    assert shown.speedup == pytest.approx(1.25, rel=0.03)
    assert (shown.pairs, shown.correctness.calls) == (30, 1)


def test_the_process_of_the_best_version_that_is_harder_to_beat_counts():
    shown = decision.confirm("c", second_timing(random.Random(5), own=0.9, best=1.2, twin=0.91), 0.99)
    assert shown.interval.low < 1.03
    assert shown.speedup == pytest.approx(0.91 / 0.9, rel=0.03)
    assert shown.twin == pytest.approx(0.91 / 1.2, rel=0.03)


def test_todays_best_stays_the_single_one_until_another_is_shown_faster_over_all():
    chance = random.Random(1)
    mixed = {"x": {"a": noisy(chance, 1.0), "b": noisy(chance, 0.8)},
             "y": {"a": noisy(chance, 1.0), "b": noisy(chance, 1.25)}}  # fmt: skip
    assert decision.choose_single(mixed, ["a", "b"], "a", {}, 0.02)[0] == "a"
    name, reason = decision.choose_single(mixed, ["a", "b"], "a", {"x": 9, "y": 1}, 0.02)
    assert name == "b"
    assert "1.1" in reason
    assert decision.choose_single(mixed, ["a", "b"], "a", {"x": 1, "y": 9}, 0.02)[0] == "a"
    name, reason = decision.choose_single(mixed, ["b"], "a", {}, 0.02)
    assert (name, reason.split(",")[0]) == ("b", "a failed")


def test_the_noise_of_one_shape_is_more_than_that_of_a_mean():
    assert decision.shape_floor(0.01) == pytest.approx(0.01732, rel=1e-3)
    assert decision.cell_confidence(20) == pytest.approx(0.9975)


def test_bounds_of_a_median_hold_as_often_as_they_say():
    chance, inside = random.Random(11), 0
    for _ in range(300):
        bounds = statistics.median_bounds([1.0] * 25, noisy(chance, 1.0, 0.1, 25), 0.95)
        inside += bounds.low <= 1 <= bounds.high
    assert inside >= 0.92 * 300
    with pytest.raises(ValueError, match="5 pairs give no interval"):
        statistics.median_bounds([1.0] * 5, [1.0] * 5, 0.999)
