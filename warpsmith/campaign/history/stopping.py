"""Stop conditions of a campaign: its performance target, or its number of rounds. Stagnation is none."""

from __future__ import annotations

from math import exp, fsum, log

from warpsmith.core.campaign import Manifest
from warpsmith.core.evaluation import Evaluation

DEFAULT_TARGET = 0.9
"""Share of the roofline at which a campaign without its own target is done."""


def mean_ceiling_share(evaluation: Evaluation) -> float | None:
    """Geometric mean of floor over time, over the timed workloads; None if nothing was timed."""
    shares = [timing.ceiling_share for timing in evaluation.timed.values()]
    return exp(fsum(map(log, shares)) / len(shares)) if shares else None


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
    share = mean_ceiling_share(best) if best else None
    if goal is not None and share is not None and share >= goal:
        return f"the best version reaches {share:.1%} of the ceiling; the target is {goal:.1%}"
    if manifest.max_iterations is not None and rounds >= manifest.max_iterations:
        return f"{rounds} rounds are closed, the most that the campaign may take"
    return None
