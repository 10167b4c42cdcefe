"""Statistics of paired times or joules: medians of log ratios, and bootstrap intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

from warpsmith.core import gate_rules
from warpsmith.core.evaluation import Aggregate, Interval

if TYPE_CHECKING:
    import numpy

_MEDIAN_ERROR = 0.93
"""Standard error of a median over interquartile range and root of the count: 1.2533 / 1.349 for normal samples."""


def spread(samples: Sequence[float]) -> float:
    """Return the interquartile range over the median."""
    import numpy as np

    low, middle, high = np.quantile(np.asarray(samples), (0.25, 0.5, 0.75))
    return float((high - low) / middle)


def median(samples: Sequence[float]) -> float:
    """Return the middle value."""
    import numpy as np

    return float(np.median(np.asarray(samples)))


def trimmed_mean(samples: Sequence[float]) -> float:
    """Return the mean without the largest of every twenty samples, which load alone may cause."""
    import numpy as np

    ordered = np.sort(np.asarray(samples))
    return float(ordered[: len(ordered) - len(ordered) // 20].mean())


def quantile(samples: Sequence[float], share: float) -> float:
    """Return the value that this share of the samples does not exceed."""
    import numpy as np

    return float(np.quantile(np.asarray(samples), share))


def standard_error(samples: Sequence[float]) -> float:
    """Estimate the standard error of the median from the interquartile range, which resists a few wild samples."""
    import numpy as np

    low, high = np.quantile(np.asarray(samples), (0.25, 0.75))
    return float(_MEDIAN_ERROR * (high - low) / np.sqrt(len(samples)))


def interval_half_width(own: Sequence[float], other: Sequence[float]) -> float:
    """Estimate half of the 95 % interval of the paired speedup, as a share; quick enough to call after each
    round."""
    return 1.96 * standard_error([float(value) for value in _log_ratios(own, other)])


def paired_speedup(own: Sequence[float], other: Sequence[float]) -> tuple[float, Interval]:
    """Return the median of the paired ratios `other / own`, taken in log space, and its bootstrap interval."""
    import numpy as np

    logs = _log_ratios(own, other)
    return float(np.exp(np.median(logs))), _bootstrap_interval([logs])


def median_bounds(own: Sequence[float], other: Sequence[float], confidence: float) -> Interval:
    """Return an interval of the paired speedup from order statistics.

    It holds for any distribution, also at a confidence at which a bootstrap of few samples has no tail left.

    Raises:
        ValueError: there are too few pairs for this confidence.
    """
    import numpy as np

    logs = np.sort(_log_ratios(own, other))
    below = itertools.accumulate(math.comb(len(logs), rank) / 2 ** len(logs) for rank in range(len(logs) // 2))
    rank = sum(2 * chance <= 1 - confidence for chance in below) - 1
    if rank < 0:
        raise ValueError(f"{len(logs)} pairs give no interval at a confidence of {confidence:.4f}")
    return Interval(low=float(np.exp(logs[rank])), high=float(np.exp(logs[-1 - rank])))


def time_shares(
    pairs: Mapping[str, tuple[Sequence[float], Sequence[float]]], calls: Mapping[str, int]
) -> dict[str, float]:
    """Return each workload's share of the time that the other side takes for all calls of a trace; equal shares
    without calls.

    Args:
        pairs: workload name to (own, other), paired by position.
        calls: workload name to its calls in the trace; one that is absent has none.
    """
    whole = {name: calls.get(name, 0) * median(other) if calls else 1.0 for name, (_, other) in pairs.items()}
    total = sum(whole.values())
    return {name: value / total for name, value in whole.items()}


def concentration(shares: Mapping[str, float]) -> float:
    """Return the noise of a mean with these shares over that of a noise floor, a mean of three equal workloads; at
    least 1."""
    return max(1.0, math.sqrt(3 * sum(share**2 for share in shares.values())))


def weighted_speedup(
    pairs: Mapping[str, tuple[Sequence[float], Sequence[float]]], calls: Mapping[str, int], confidence: float
) -> tuple[float, Interval]:
    """Return the geometric mean of the workloads' speedups, weighted by `time_shares`, and its interval from the
    standard errors of their medians.

    Args:
        pairs: workload name to (own, other) in seconds, paired by position.
        calls: workload name to its calls in the trace; empty if nobody counted them.
        confidence: confidence of the interval.
    """
    import numpy as np

    logs = {name: _log_ratios(*both) for name, both in pairs.items()}
    shares = np.array(list(time_shares(pairs, calls).values()))
    middle = float(shares @ [np.median(values) for values in logs.values()])
    errors = np.array([standard_error([float(value) for value in values]) for values in logs.values()])
    half = NormalDist().inv_cdf((1 + confidence) / 2) * float(np.sqrt(np.square(shares * errors).sum()))
    return float(np.exp(middle)), Interval(low=float(np.exp(middle - half)), high=float(np.exp(middle + half)))


def geometric_mean(
    pairs: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    against: str,
    calls: Mapping[str, int] | None = None,
) -> Aggregate:
    """Return the geometric mean of the workloads' speedups, resampled inside each workload.

    Args:
        pairs: workload name to (own, other), in seconds or joules, paired by position.
        against: name of the other side.
        calls: workload name to its calls in a trace, by which `time_shares` weighs; without them all weigh the
            same.
    """
    import numpy as np

    logs = {name: _log_ratios(*both) for name, both in pairs.items()}
    medians = {name: float(np.median(values)) for name, values in logs.items()}
    worst = min(medians, key=lambda name: medians[name])
    shares = time_shares(pairs, calls or {})
    return Aggregate(
        against=against,
        speedup=float(np.exp(sum(shares[name] * value for name, value in medians.items()))),
        interval=_bootstrap_interval(list(logs.values()), list(shares.values())),
        worst_workload=worst,
        worst=float(np.exp(medians[worst])),
        shares=shares if calls else {},
    )


def student_floor(gains: Sequence[float]) -> float:
    """Return the size that a gain by chance exceeds in one of twenty comparisons, from a few comparisons of a side
    with itself.

    This is Student's quantile times their root mean square: the largest of a few is less than that, and by luck
    much less.
    """
    import numpy as np
    from scipy.special import stdtrit

    size = float(np.sqrt(np.mean(np.square(gains))))
    return max(gate_rules.MIN_FLOOR, size * float(stdtrit(len(gains), (1 + gate_rules.CONFIDENCE) / 2)))


def self_comparison_floor(comparison: Aggregate) -> float:
    """Return the noise floor that one comparison of a side with itself shows.

    This is the far end of its interval, measured from a speedup of 1.
    """
    return max(gate_rules.MIN_FLOOR, comparison.interval.high - 1, 1 - comparison.interval.low)


def _log_ratios(own: Sequence[float], other: Sequence[float]) -> numpy.ndarray:
    import numpy as np

    ratios: numpy.ndarray = np.log(np.asarray(other)) - np.log(np.asarray(own))
    return ratios


def _bootstrap_interval(samples: Sequence[numpy.ndarray], shares: Sequence[float] = (1.0,)) -> Interval:
    """Return the percentile bootstrap interval of the weighted mean of medians, each sample resampled by itself.

    `scipy.stats.bootstrap` computes the same, but takes more than a second to import.
    """
    import numpy as np

    generator = np.random.default_rng(0)
    means = np.zeros(gate_rules.RESAMPLES)
    for values, share in zip(samples, shares, strict=True):
        places = generator.integers(0, len(values), (gate_rules.RESAMPLES, len(values)))
        means += share * np.median(values[places], axis=-1)
    outside = (1 - gate_rules.CONFIDENCE) / 2
    low, high = np.quantile(means / sum(shares), (outside, 1 - outside))
    return Interval(low=float(np.exp(low)), high=float(np.exp(high)))
