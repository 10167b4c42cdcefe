"""Decisions of a map: the best single version, and the version that was shown faster at a shape.

The first timing of all versions names one version a shape. The second one, in fresh processes, tests that version
alone, so that choosing the fastest of several does not favor it. Only the number of shapes is left to correct for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpsmith.core import gate_rules
from warpsmith.core.evaluation import BEST, TWIN, Interval
from warpsmith.lab.grading.correctness import summarize_grades
from warpsmith.lab.performance_map.models import Confirmation
from warpsmith.lab.timing import statistics
from warpsmith.lab.timing.samples import Samples
from warpsmith.lab.timing.session import SOLUTION

Times = Mapping[str, Mapping[str, Sequence[float]]]
"""Workload to version to its seconds, paired by position."""


def shape_floor(noise_floor: float) -> float:
    """Return the gain that noise may show at a single shape."""
    return noise_floor * statistics.concentration({"one": 1.0})


def cell_confidence(shapes: int) -> float:
    """Return the confidence of one shape's interval, so that those of all shapes hold together with 95 %
    (Bonferroni)."""
    return 1 - (1 - gate_rules.CONFIDENCE) / shapes


def choose_single(
    times: Times, sound: Sequence[str], today: str, calls: Mapping[str, int], floor: float
) -> tuple[str, str]:
    """Choose the best single version over all shapes; return it with the reason in one sentence.

    It is today's best unless another one is shown faster over all shapes: the interval of its weighted mean,
    corrected for the number of versions, is clear of 1 beyond the noise floor. With calls,
    other shapes do not count.

    Args:
        times: times of the first timing.
        sound: versions that were correct at every shape, in order of preference.
        today: the best version so far.
        calls: calls of a shape in a captured trace, by the name of its workload; empty: all shapes weigh the same.
        floor: noise floor of a mean.
    """
    base = today if today in sound else sound[0]
    confidence = cell_confidence(max(1, len(sound) - 1))
    means: dict[str, tuple[float, Interval]] = {}
    for name in sound:
        if name != base:
            pairs = {workload: (sides[name], sides[base]) for workload, sides in times.items()}
            means[name] = statistics.weighted_speedup(pairs, calls, confidence)
    faster = {name: mean for name, mean in means.items() if mean[1].low > 1 + floor}
    if not faster:
        reason = "no other version is shown faster over all shapes"
        return base, reason if base == today else f"{today} failed, and {reason}"
    name = max(faster, key=lambda name: faster[name][0])
    speedup, interval = faster[name]
    return (
        name,
        f"over all shapes it is {speedup:.2f}x [{interval.low:.2f}, {interval.high:.2f}] as fast as {base}",
    )


def fastest_candidate(sides: Mapping[str, Sequence[float]], sound: Sequence[str], best: str, floor: float) -> str:
    """Return the version that is ahead of the best single one at a shape by the most; empty if none is clearly.

    Args:
        sides: version to its seconds at the shape.
        sound: versions that may be chosen.
        best: the best single version.
        floor: gain that noise may show at one shape.
    """
    ahead: dict[str, float] = {}
    for name in sound:
        if name != best and name in sides:
            bounds = statistics.median_bounds(sides[name], sides[best], gate_rules.CONFIDENCE)
            speedup = _median_ratio(sides[name], sides[best])
            if bounds.low > 1 and speedup > 1 + floor:
                ahead[name] = speedup
    return max(ahead, key=lambda name: ahead[name]) if ahead else ""


def confirm(solution: str, samples: Samples, confidence: float) -> Confirmation:
    """Summarize the second timing of a version against two processes of the best single version; the one that it
    gains less over counts."""
    own = samples.seconds[SOLUTION]
    gains = {side: _median_ratio(own, samples.seconds[side]) for side in (BEST, TWIN)}
    hardest = min(gains, key=lambda side: gains[side])
    return Confirmation(
        solution=solution,
        seconds=statistics.median(own),
        best_seconds=statistics.median(samples.seconds[hardest]),
        speedup=gains[hardest],
        interval=statistics.median_bounds(own, samples.seconds[hardest], confidence),
        twin=_median_ratio(samples.seconds[BEST], samples.seconds[TWIN]),
        pairs=len(own),
        correctness=summarize_grades(samples.grades),
    )


def _median_ratio(own: Sequence[float], other: Sequence[float]) -> float:
    """Return the median of the paired ratios `other / own`."""
    return statistics.median([other_seconds / seconds for seconds, other_seconds in zip(own, other, strict=True)])
