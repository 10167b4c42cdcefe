from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsmith.lab.timing import statistics


def test_the_interval_covers_the_true_ratio():
    random, covered, cases = np.random.default_rng(11), 0, 60
    for _ in range(cases):
        ours = 1e-3 * np.exp(random.normal(0, 0.05, 40))
        theirs = 1.3e-3 * np.exp(random.normal(0, 0.05, 40))
        value, interval = statistics.paired_speedup(ours, theirs)
        assert interval.low <= value <= interval.high
        covered += interval.low <= 1.3 <= interval.high
    assert covered >= 0.88 * cases


def test_more_samples_narrow_the_interval():
    random = np.random.default_rng(5)
    widths = []
    for count in (10, 1000):
        both = np.exp(random.normal(0, 0.1, (2, count)))
        interval = statistics.paired_speedup(*both)[1]
        widths.append(interval.high - interval.low)
    assert widths[1] < widths[0] / 3


def test_a_drift_common_to_both_sides_cancels():
    drift = np.linspace(1, 3, 30)
    value, interval = statistics.paired_speedup(drift, 2 * drift)
    assert value == pytest.approx(2)
    assert interval.high - interval.low < 1e-9


def test_identical_samples():
    value, interval = statistics.paired_speedup([1e-3] * 5, [1e-3] * 5)
    assert (value, interval.low, interval.high) == (1.0, 1.0, 1.0)
    one = statistics.geometric_mean({"a": ([1.0] * 4, [2.0] * 4)}, "best")
    assert (one.interval.low, one.interval.high) == (pytest.approx(2), pytest.approx(2))


def test_one_steady_workload_among_others():
    random = np.random.default_rng(3)
    noisy = list(np.exp(random.normal(0, 0.1, 20)))
    found = statistics.geometric_mean({"steady": ([1.0] * 20, [1.0] * 20), "noisy": ([1.0] * 20, noisy)}, "best")
    assert found.interval.low <= found.speedup <= found.interval.high


def test_geometric_mean_over_workloads():
    pairs = {"a": ([1.0] * 6, [4.0] * 6), "b": ([1.0] * 6, [1.0] * 6), "c": ([2.0] * 6, [1.0] * 6)}
    found = statistics.geometric_mean(pairs, "best")
    assert found.speedup == pytest.approx(2 ** (1 / 3))
    assert (found.worst_workload, found.worst, found.against) == ("c", pytest.approx(0.5), "best")


def test_each_workload_counts_the_same_however_often_it_was_timed():
    pairs = {"a": ([1.0] * 100, [4.0] * 100), "b": ([1.0] * 5, [1.0] * 5)}
    assert statistics.geometric_mean(pairs, "best").speedup == pytest.approx(2)


def test_an_outlier_does_not_move_the_median():
    assert statistics.paired_speedup([1.0] * 9, [1.0] * 8 + [100.0])[0] == 1.0
    assert statistics.median([3, 1, 2]) == 2
    assert statistics.spread([1.0, 2.0, 3.0]) == pytest.approx(0.5)
    assert statistics.quantile([0.0, 1.0], 0.95) == pytest.approx(0.95)


repeatable = settings(derandomize=True, deadline=None, max_examples=40)
times = st.floats(1e-6, 1.0)
pairs = st.lists(st.tuples(times, times), min_size=2, max_size=30).map(lambda rows: tuple(zip(*rows, strict=True)))
workloads = st.dictionaries(st.sampled_from("abcd"), pairs, min_size=1)


def logs(interval):
    return np.log([interval.low, interval.high])


@repeatable
@given(pairs, st.floats(1e-3, 1e3))
def test_the_unit_of_time_does_not_matter(both, scale):
    value, interval = statistics.paired_speedup(*both)
    scaled, other = statistics.paired_speedup(*(np.asarray(side) * scale for side in both))
    assert scaled == pytest.approx(value)
    assert logs(other) == pytest.approx(logs(interval), abs=1e-9)


@repeatable
@given(pairs)
def test_exchanged_sides_give_the_reciprocal(both):
    value, interval = statistics.paired_speedup(*both)
    back, other = statistics.paired_speedup(*reversed(both))
    assert back == pytest.approx(1 / value)
    assert logs(other) == pytest.approx(-logs(interval)[::-1], abs=1e-9)


@repeatable
@given(pairs)
def test_the_interval_holds_the_speedup(both):
    value, interval = statistics.paired_speedup(*both)
    assert interval.low <= value * (1 + 1e-12)
    assert value <= interval.high * (1 + 1e-12)


@repeatable
@given(workloads)
def test_the_mean_lies_between_the_workloads(several):
    found = statistics.geometric_mean(several, "best")
    each = {name: statistics.paired_speedup(*both)[0] for name, both in several.items()}
    assert min(each.values()) * (1 - 1e-9) <= found.speedup <= max(each.values()) * (1 + 1e-9)
    assert each[found.worst_workload] == pytest.approx(found.worst)
    assert found.worst == pytest.approx(min(each.values()))


@repeatable
@given(workloads)
def test_the_order_of_the_workloads_does_not_matter(several):
    turned = dict(reversed(several.items()))
    one, other = (statistics.geometric_mean(which, "best") for which in (several, turned))
    assert one.speedup == pytest.approx(other.speedup)


@repeatable
@given(st.integers(0, 2**32), st.integers(12, 60), st.floats(1e-4, 0.1))
def test_the_quick_half_width_is_about_that_of_the_interval(seed, count, noise):
    both = np.exp(np.random.default_rng(seed).normal(0, noise, (2, count)))
    low, high = logs(statistics.paired_speedup(*both)[1])
    assert 0.3 < statistics.interval_half_width(*both) / ((high - low) / 2) < 3


def test_a_trimmed_mean_keeps_every_ninth_call_and_drops_one_in_twenty():
    assert statistics.trimmed_mean([1.0] * 8 + [100.0]) == pytest.approx(12.0)
    assert statistics.trimmed_mean([1.0] * 39 + [100.0]) == pytest.approx(1.0)


def test_the_interval_is_that_of_scipy() -> None:
    from scipy.stats import bootstrap

    rng = np.random.default_rng(5)
    groups = [rng.normal(0.1 * number, 0.02, 40 + number) for number in range(3)]
    shares = [0.5, 0.2, 0.3]

    def centre(*samples: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.average([np.median(sample, axis=axis) for sample in samples], axis=0, weights=shares)

    expected = bootstrap(groups, centre, n_resamples=20000, method="percentile", vectorized=True, rng=rng)
    interval = statistics._bootstrap_interval(groups, shares)
    width = interval.high - interval.low
    assert np.log([interval.low, interval.high]) == pytest.approx(
        [expected.confidence_interval.low, expected.confidence_interval.high], abs=0.1 * width
    )


@pytest.mark.parametrize("count", [9, 30, 101])
@pytest.mark.parametrize("confidence", [0.95, 0.995])
def test_bounds_of_the_median_are_ranks_of_the_binomial_distribution(count: int, confidence: float) -> None:
    from scipy.stats import binom

    other = np.exp(np.arange(count) / 100.0)
    interval = statistics.median_bounds([1.0] * count, list(other), confidence)
    rank = round(100 * np.log(interval.low))
    assert 2 * binom.cdf(rank, count, 0.5) <= 1 - confidence < 2 * binom.cdf(rank + 1, count, 0.5)
    assert np.log(interval.high) == pytest.approx((count - 1 - rank) / 100)


def test_a_floor_is_a_quantile_of_students_distribution() -> None:
    from scipy.stats import t

    assert statistics.student_floor([0.1, 0.1, 0.1]) == pytest.approx(0.1 * t.ppf(0.975, 3))
