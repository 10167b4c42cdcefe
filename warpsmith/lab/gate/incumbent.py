"""Incumbent: the best version is held against the time that it was accepted with.

A version that notices that it is the best one, and slows down, would let anything win. However it notices, its
time shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from warpsmith.core import gate_rules
from warpsmith.core.evaluation import BEST, REFERENCE, Evaluation
from warpsmith.core.hardware import Machine
from warpsmith.errors import MachineFailed
from warpsmith.lab.timing import statistics
from warpsmith.lab.timing.samples import Samples


def require_accepted_speed(accepted: Evaluation | None, samples: Mapping[str, Samples], machine: Machine) -> None:
    """Check that the best version is not far slower, beside the reference, than when it was accepted here.

    Args:
        accepted: its judgement; None if there is none, as outside of a campaign.
        samples: workload to its times in this judgement.
        machine: machine of this judgement; times of another one say nothing.

    Raises:
        MachineFailed: it is far slower, so that nothing can be compared with it.
    """
    if accepted is None or accepted.provenance.machine.id != machine.id:
        return
    ratios = []
    for name, current in samples.items():
        then = accepted.timed.get(name)
        reference = then.against(REFERENCE) if then else None
        if then and reference and current.seconds.get(BEST) and current.seconds.get(REFERENCE):
            best, other = (statistics.median(current.seconds[side]) for side in (BEST, REFERENCE))
            ratios.append(best / other / (then.seconds / reference.other_seconds))
    slowdown = prod(ratios) ** (1 / len(ratios)) if ratios else 1.0
    if slowdown > gate_rules.INCUMBENT_SLOWDOWN:
        raise MachineFailed(
            f"The best version takes {slowdown:.1f} times as long, beside the reference, as when it was accepted"
            " on this machine: a gain over it would say nothing. Judge again, or review the best version."
        )
