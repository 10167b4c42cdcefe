"""Effects of entries on the gain of a round, from campaigns that withheld entries at random.

A campaign is the unit, since its rounds share one draw: each gives the mean gain of the rounds that an entry
fitted. The effect is the difference of the means with and without the entry, with Welch's interval.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist, mean, variance
from typing import Any

from warpsmith.core.evaluation import Interval
from warpsmith.core.knowledge import Effect

FEWEST = 4
"""Campaigns with and without an entry below which its effect has no interval."""


class EffectSamples:
    """Gains of the rounds that each entry fitted, by campaign."""

    def __init__(self) -> None:
        self._shown: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self._withheld: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))

    def add(self, record: dict[str, Any], *, struck: bool) -> None:
        """Add a round's record; one without a draw and a baseline add nothing.

        Raises:
            KeyError, TypeError: it is no record of a round.
        """
        draw = record.get("draw")
        if draw is None or record["plan"]["category"] == "baseline":
            return
        accepted = not struck and record["evaluation"]["decision"]["verdict"] == "ACCEPT"
        gain = float(record["outcome"]["gain"] or 0) if accepted else 0.0
        for samples, ids in ((self._shown, draw["shown"]), (self._withheld, draw["withheld"])):
            for id in ids:
                samples[id][record["campaign"]].append(gain)

    def effects(self) -> dict[str, Effect]:
        """Return the effect of each entry that was shown in a campaign and withheld in another."""
        both = sorted(self._shown.keys() & self._withheld.keys())
        return {id: _effect(_means(self._shown[id]), _means(self._withheld[id])) for id in both}


def _means(gains: dict[str, list[float]]) -> list[float]:
    return [mean(values) for values in gains.values()]


def _effect(with_it: list[float], without_it: list[float]) -> Effect:
    gain = mean(with_it) - mean(without_it)
    interval = None
    if min(len(with_it), len(without_it)) >= FEWEST:
        half = _welch_half_width(with_it, without_it)
        interval = Interval(low=gain - half, high=gain + half)
    return Effect(shown=len(with_it), withheld=len(without_it), gain=gain, interval=interval)


def _welch_half_width(*groups: Sequence[float]) -> float:
    """Return half of the 95 % interval of the difference of two means."""
    parts = [variance(values) / len(values) for values in groups]
    total = sum(parts)
    if not total:
        return 0.0
    degrees = total**2 / sum(part**2 / (len(values) - 1) for part, values in zip(parts, groups, strict=True))
    return sqrt(total) * t_quantile(degrees)


def t_quantile(degrees: float) -> float:
    """Return the 97.5 % quantile of Student's t; within 0.2 % from three degrees of freedom on.

    The expansion in powers of 1 / degrees is Abramowitz and Stegun's 26.7.5; a search must not wait for SciPy.
    """
    z = NormalDist().inv_cdf(0.975)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return sum(term / degrees**power for power, term in enumerate(terms))
