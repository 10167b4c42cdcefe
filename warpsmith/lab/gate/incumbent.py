"""Incumbent: the best version is held against the time that it was accepted with.

A version that notices that it is the best one, and slows down, would let anything win. However it notices, its
time shows it. A time that was taken while other programs ran may be wrong itself; `find_retiming_fault` says when
another one may take its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from warpsmith.core import gate_rules, trust
from warpsmith.core.evaluation import BEST, REFERENCE, SLOWED, Evaluation, Verdict
from warpsmith.core.hardware import Machine
from warpsmith.errors import MachineFailed
from warpsmith.lab.timing import statistics
from warpsmith.lab.timing.samples import Samples


def require_accepted_speed(accepted: Evaluation | None, samples: Mapping[str, Samples], machine: Machine) -> None:
    """Check that the best version is not far slower, beside the reference, than when it was accepted here.

    Args:
        accepted: its judgement, or its retiming; None if there is none, as outside of a campaign.
        samples: workload to its times in this judgement.
        machine: machine of this judgement; times of another one say nothing.

    Raises:
        MachineFailed: it is far slower, so that nothing can be compared with it.
    """
    if accepted is None or accepted.provenance.machine.id != machine.id:
        return
    then, ratios = _shares_of_reference(accepted), []
    for name, current in samples.items():
        if name in then and current.seconds.get(BEST) and current.seconds.get(REFERENCE):
            best, other = (statistics.median(current.seconds[side]) for side in (BEST, REFERENCE))
            ratios.append(best / other / then[name])
    slowdown = _mean(ratios)
    if slowdown > gate_rules.INCUMBENT_SLOWDOWN:
        raise MachineFailed(
            f"{SLOWED}: {slowdown:.1f} times as long, beside the reference, as when it was accepted on this"
            " machine. A gain over it would say nothing. Judge again, or review the best version."
        )


def find_retiming_fault(accepted: Evaluation, again: Evaluation) -> str:
    """Return why the best version's new time does not take the place of its accepted one; empty if it does.

    It does where the version is no slower in seconds than when it was accepted, and slower beside the reference:
    then the reference was slow when the version was accepted, and not the version now. A version that slows down
    once it is the best one takes more seconds.

    Args:
        accepted: judgement that accepted it.
        again: its judgement as a candidate, beside the reference alone, in later processes.
    """
    if fault := find_unfit_machine(again):
        return fault
    old, new = accepted.provenance, again.provenance
    if old.machine.id != new.machine.id:
        return "it was timed on another machine"
    if (old.solution_sha256, old.definition_sha256) != (new.solution_sha256, new.definition_sha256):
        return "the version or the definition is another one"
    if not again.decision.verdict.accepted:
        return f"it was not accepted again: {again.decision.reason}"
    if not accepted.timed.keys() <= again.timed.keys():
        return "it was not timed at every workload that it was accepted at"
    longer = _mean(again.timed[name].seconds / timing.seconds for name, timing in accepted.timed.items())
    if longer > gate_rules.RETIMED_SECONDS:
        return f"the version itself takes {longer:.2f} times the seconds that it took when it was accepted"
    old_shares, shares = _shares_of_reference(accepted), _shares_of_reference(again)
    slowdown = _mean(shares[name] / old for name, old in old_shares.items() if name in shares)
    if slowdown <= gate_rules.RETIMED_SECONDS:
        return (
            f"without the candidate it takes {slowdown:.2f} times as long beside the reference as when it was"
            " accepted, so its accepted time is right"
        )
    return ""


def find_unfit_machine(again: Evaluation) -> str:
    """Return why a retiming says nothing about the version: the machine failed or was busy; empty if it does."""
    if again.decision.verdict is Verdict.INVALID:
        return f"the machine failed: {again.decision.reason}"
    idle = next((check for check in again.trust if check.name == trust.MACHINE_IDLE), None)
    if again.timed and (idle is None or not idle.ran):
        return f"the machine is not idle: {idle.how if idle else 'nothing checked it'}"
    return ""


def _shares_of_reference(evaluation: Evaluation) -> dict[str, float]:
    """Return the version's time over the reference's, by workload."""
    references = {name: timing.against(REFERENCE) for name, timing in evaluation.timed.items()}
    return {
        name: evaluation.timed[name].seconds / reference.other_seconds
        for name, reference in references.items()
        if reference
    }


def _mean(ratios: Iterable[float]) -> float:
    """Return the geometric mean; 1 of none."""
    values = list(ratios)
    return prod(values) ** (1 / len(values)) if values else 1.0
