"""Statistics of paired times, or joules: medians of log ratios, and bootstrap intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from warpsmith.core.evaluation import Aggregate, Interval

if TYPE_CHECKING:
    import numpy

RESAMPLES = 2000
CONFIDENCE = 0.95
SMALLEST = 0.002
"""No floor below it is believed: so few comparisons cannot show one."""

_MEDIAN_ERROR = 0.93
"""Standard error of a median over interquartile range and root of the count: 1.2533 / 1.349 for normal samples."""


def spread(samples: Sequence[float]) -> float:
    """Interquartile range over the median."""
    import numpy as np

    low, middle, high = np.quantile(np.asarray(samples), (0.25, 0.5, 0.75))
    return float((high - low) / middle)


def median(samples: Sequence[float]) -> float:
    """The middle value."""
    import numpy as np

    return float(np.median(np.asarray(samples)))


def quantile(samples: Sequence[float], share: float) -> float:
    """The value that this share of the samples is not above."""
    import numpy as np

    return float(np.quantile(np.asarray(samples), share))


def standard_error(samples: Sequence[float]) -> float:
    """Of the median, from the interquartile range: robust against a few wild samples."""
    import numpy as np

    low, high = np.quantile(np.asarray(samples), (0.25, 0.75))
    return float(_MEDIAN_ERROR * (high - low) / np.sqrt(len(samples)))


def half_width(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """About half of the 95 % interval of the paired speedup, as a share: quick enough to ask after every round."""
    return 1.96 * standard_error([float(value) for value in _logs(ours, theirs)])


def speedup(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, Interval]:
    """Median of the paired ratios theirs / ours, in log space, with its bootstrap interval."""
    import numpy as np

    logs = _logs(ours, theirs)
    return float(np.exp(np.median(logs))), _interval([logs])


def geometric_mean(pairs: Mapping[str, tuple[Sequence[float], Sequence[float]]], against: str) -> Aggregate:
    """Geometric mean over workloads of the speedups; resampled inside each workload.

    Args:
        pairs: workload name to (ours, theirs), seconds or joules, paired by position.
        against: what the other side is called.
    """
    import numpy as np

    logs = {name: _logs(*both) for name, both in pairs.items()}
    medians = {name: float(np.median(values)) for name, values in logs.items()}
    worst = min(medians, key=lambda name: medians[name])
    return Aggregate(
        against=against,
        speedup=float(np.exp(np.mean(list(medians.values())))),
        interval=_interval(list(logs.values())),
        worst_workload=worst,
        worst=float(np.exp(medians[worst])),
    )


def floor(itself: Aggregate) -> float:
    """The floor by one comparison of the same with the same: how far from no gain that may fall."""
    return max(SMALLEST, itself.interval.high - 1, 1 - itself.interval.low)


def _logs(ours: Sequence[float], theirs: Sequence[float]) -> numpy.ndarray:
    import numpy as np

    ratios: numpy.ndarray = np.log(np.asarray(theirs)) - np.log(np.asarray(ours))
    return ratios


def _interval(samples: Sequence[numpy.ndarray]) -> Interval:
    import numpy as np
    from scipy.stats import bootstrap

    def centre(*groups: numpy.ndarray, axis: int = -1) -> numpy.ndarray:
        mean: numpy.ndarray = np.mean([np.median(group, axis=axis) for group in groups], axis=0)
        return mean

    if all(float(np.ptp(group)) == 0 for group in samples):
        value = float(np.exp(centre(*samples)))
        return Interval(low=value, high=value)
    found = bootstrap(
        tuple(samples),
        centre,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(0),
    ).confidence_interval
    return Interval(low=float(np.exp(found.low)), high=float(np.exp(found.high)))
