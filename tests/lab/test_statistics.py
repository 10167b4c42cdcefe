from __future__ import annotations

import numpy as np
import pytest

from warpsmith.lab import statistics


def test_the_interval_covers_the_true_ratio():
    random, covered, cases = np.random.default_rng(11), 0, 60
    for _ in range(cases):
        ours = 1e-3 * np.exp(random.normal(0, 0.05, 40))
        theirs = 1.3e-3 * np.exp(random.normal(0, 0.05, 40))
        value, interval = statistics.speedup(ours, theirs)
        assert interval.low <= value <= interval.high
        covered += interval.low <= 1.3 <= interval.high
    assert covered >= 0.88 * cases


def test_more_samples_narrow_the_interval():
    random = np.random.default_rng(5)
    widths = []
    for count in (10, 1000):
        both = np.exp(random.normal(0, 0.1, (2, count)))
        interval = statistics.speedup(*both)[1]
        widths.append(interval.high - interval.low)
    assert widths[1] < widths[0] / 3


def test_a_drift_common_to_both_sides_cancels():
    drift = np.linspace(1, 3, 30)
    value, interval = statistics.speedup(drift, 2 * drift)
    assert value == pytest.approx(2)
    assert interval.high - interval.low < 1e-9


def test_identical_samples():
    value, interval = statistics.speedup([1e-3] * 5, [1e-3] * 5)
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
    assert statistics.speedup([1.0] * 9, [1.0] * 8 + [100.0])[0] == 1.0
    assert statistics.median([3, 1, 2]) == 2
    assert statistics.spread([1.0, 2.0, 3.0]) == pytest.approx(0.5)
    assert statistics.quantile([0.0, 1.0], 0.95) == pytest.approx(0.95)
