"""Stop conditions of a campaign: its performance target, its number of rounds, or a round that does not pay.

Stagnation is none. Whether a round pays is decided once, at EVALUATE, and read from the record afterwards: a later
round of another campaign must not open this one again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, fsum, log

from warpsmith.campaign.history import records
from warpsmith.core.campaign import Manifest, RoundRecord
from warpsmith.core.evaluation import Evaluation, Timing

DEFAULT_TARGET = 0.9
"""Share of the roofline at which a campaign without its own target is done."""


def mean_ceiling_share(evaluation: Evaluation) -> float | None:
    """Geometric mean of floor over time, over the timed workloads; None if nothing was timed."""
    return _mean_share(evaluation.timed.values())


def _mean_share(timings: Iterable[Timing]) -> float | None:
    shares = [timing.ceiling_share for timing in timings]
    return exp(fsum(map(log, shares)) / len(shares)) if shares else None


def round_timings(manifest: Manifest, evaluation: Evaluation) -> dict[str, Timing]:
    """Return the timings at the workloads that a round of the campaign is judged at, by name."""
    chosen = evaluation.representative if manifest.shapes == "representative" else ()
    return {name: timing for name, timing in evaluation.timed.items() if not chosen or name in chosen}


def target_share(manifest: Manifest) -> float | None:
    """Share of the ceiling at which a campaign is done; None for energy without a target."""
    default = DEFAULT_TARGET if manifest.objective == "time" else None
    return manifest.performance_target or default


def stop_reason(manifest: Manifest, best: Evaluation | None, rounds: int) -> str | None:
    """Describe the stop condition that holds; None if none does.

    Args:
        manifest: the campaign's manifest.
        best: evaluation of the best version.
        rounds: number of closed rounds, including the one being evaluated.
    """
    goal = target_share(manifest)
    share = _mean_share(round_timings(manifest, best).values()) if best else None
    if goal is not None and share is not None and share >= goal:
        return f"the best version reaches {share:.1%} of the ceiling; the target is {goal:.1%}"
    if manifest.max_iterations is not None and rounds >= manifest.max_iterations:
        return f"{rounds} rounds are closed, the most that the campaign may take"
    return None


def recorded_stop(manifest: Manifest, closed: Sequence[RoundRecord]) -> str | None:
    """Describe the stop condition that holds after the closed rounds; None if none does.

    The last record says if another round does not pay, until a later strike changes the best version.
    """
    best = records.best_round(closed)
    reason = stop_reason(manifest, best.evaluation if best else None, len(closed))
    if reason or manifest.minimum_gain is None or not closed:
        return reason
    struck = any(record.struck and record.struck.at >= closed[-1].closed for record in closed)
    return None if struck else closed[-1].outcome.stop
