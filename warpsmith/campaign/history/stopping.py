"""When a campaign ends: the performance target, or the last of its rounds. Stagnation never ends one."""

from __future__ import annotations

from math import exp, fsum, log

from warpsmith.core.campaign import Manifest
from warpsmith.core.evaluation import Evaluation

DEFAULT_TARGET = 0.9
"""Share of the roofline at which a campaign without a target of its own is done."""


def mean_ceiling_share(evaluation: Evaluation) -> float | None:
    """Geometric mean of floor over time, over the timed workloads; None where nothing was timed."""
    shares = [timing.ceiling_share for timing in evaluation.timed.values()]
    return exp(fsum(map(log, shares)) / len(shares)) if shares else None


def target_share(manifest: Manifest) -> float | None:
    """Share of the ceiling at which a campaign is done; None: no share of it ends one by energy."""
    default = DEFAULT_TARGET if manifest.objective == "time" else None
    return manifest.performance_target or default


def stop_reason(manifest: Manifest, best: Evaluation | None, rounds: int) -> str | None:
    """The stop condition that holds, in words; None: go on.

    Args:
        manifest: the campaign's.
        best: the evaluation of the best version.
        rounds: rounds closed so far, the one being evaluated included.
    """
    enough = target_share(manifest)
    share = mean_ceiling_share(best) if best else None
    if enough is not None and share is not None and share >= enough:
        return f"the best version reaches {share:.1%} of the ceiling; the target is {enough:.1%}"
    if manifest.max_iterations is not None and rounds >= manifest.max_iterations:
        return f"{rounds} rounds are closed, as many as the campaign may take"
    return None
