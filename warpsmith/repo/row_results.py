"""Results of rows: paired costs, the pair of runs in the middle, and the losses that are not excluded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from warpsmith.core.evaluation import BEST, Comparison, Decision, Verdict
from warpsmith.core.repo import RepoSettings, RowResult
from warpsmith.lab.gate.decision import ProvisionalDecision
from warpsmith.lab.timing import statistics

Pairs = dict[tuple[str, str], tuple[list[float], list[float]]]
"""Costs of candidate and base, run by run, for each row and metric."""

_MOST_NAMES = 6


def name_pairs(pairs: Pairs) -> dict[str, tuple[list[float], list[float]]]:
    """Return the costs by a name for each row, with the metric if there are several."""
    several = len({metric for _, metric in pairs}) > 1
    return {f"{row} [{metric}]" if several else row: both for (row, metric), both in pairs.items()}


def compare_rows(pairs: Pairs) -> dict[str, Comparison]:
    """Compare the candidate with the base at each row."""
    comparisons = {}
    for name, (candidate, base) in name_pairs(pairs).items():
        speedup, interval = statistics.paired_speedup(candidate, base)
        comparisons[name] = Comparison(
            against=BEST,
            other_seconds=statistics.median(base),
            speedup=speedup,
            interval=interval,
            pairs=len(candidate),
        )
    return comparisons


def list_row_results(settings: RepoSettings, pairs: Pairs) -> Iterable[RowResult]:
    """List the results of the rows; times are those of the pair of runs whose ratio is the speedup."""
    for (row, metric), (candidate, base) in pairs.items():
        speedup, interval = statistics.paired_speedup(candidate, base)
        before, after = middle_pair(candidate, base)
        better = settings.metrics.get(metric, "lower")
        yield RowResult(
            row=row,
            metric=metric,
            better=better,
            before=before if better == "lower" else 1 / before,
            after=after if better == "lower" else 1 / after,
            speedup=speedup,
            interval=interval,
            pairs=len(candidate),
        )


def middle_pair(candidate: Sequence[float], base: Sequence[float]) -> tuple[float, float]:
    """Return the costs of base and candidate in the pair of runs with the median ratio.

    Medians of each side may come from different pairs and contradict the speedup. With an even number of pairs the
    two in the middle are averaged, geometrically, as the speedup is.
    """
    ordered = sorted(zip(base, candidate, strict=True), key=lambda both: both[0] / both[1])
    middle = ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
    before, after = (math.exp(sum(map(math.log, costs)) / len(middle)) for costs in zip(*middle, strict=True))
    return before, after


def possible_losses(comparisons: Mapping[str, Comparison], regression: float) -> dict[str, float]:
    """Return the largest loss that is not excluded, for rows whose interval reaches below the regression limit."""
    return {
        name: 1 - comparison.interval.low
        for name, comparison in comparisons.items()
        if comparison.interval.low < 1 - regression
    }


def note_possible_losses(provisional: ProvisionalDecision, losses: Mapping[str, float], than: str) -> Decision:
    """Return an acceptance that names the losses that were not excluded; any other decision as it is."""
    decision, mean = provisional.decision, provisional.aggregate
    if not (decision.verdict.accepted and losses and mean):
        return decision
    worst = sorted(losses, key=lambda name: -losses[name])
    names = ", ".join(worst[:_MOST_NAMES]) + (
        f" and {len(worst) - _MOST_NAMES} more" if worst[_MOST_NAMES:] else ""
    )
    gain = f"{mean.speedup - 1:+.1%} [{mean.interval.low - 1:+.1%}, {mean.interval.high - 1:+.1%}] over {than}"
    if decision.verdict is Verdict.ACCEPT_WITH_NOTE:
        gain = f"{decision.reason}; not excluded"
    else:
        gain = f"{gain}; none shown slower"
    reason = f"{gain}; could be up to {losses[worst[0]]:.1%} slower: rows {names}"
    return decision.model_copy(update={"verdict": Verdict.ACCEPT_WITH_NOTE, "reason": reason[:600]})
