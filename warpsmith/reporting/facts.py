"""Facts about rounds that pages show in addition to the records' own fields; every number is measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from math import exp, fsum, log, prod
from typing import Literal

from warpsmith.campaign.history import records as order
from warpsmith.campaign.history import stopping
from warpsmith.core.campaign import Manifest, RoundRecord
from warpsmith.core.evaluation import (
    BEST,
    COMPILED,
    GATE_VERSION,
    REFERENCE,
    Aggregate,
    Evaluation,
    Status,
    WorkloadResult,
)
from warpsmith.core.evidence import Rerun
from warpsmith.core.hardware import Machine
from warpsmith.core.spend import Spend, Spent
from warpsmith.reporting import format
from warpsmith.reporting.format import count_noun

SIDES = {BEST: "the best version before", REFERENCE: "PyTorch eager"}
"""Display names of sides; a peer is shown by its own name."""

EVIDENCE = {
    "counters": "hardware counters",
    "timings": "timings only",
    "static": "compile and arithmetic only",
}
"""Display names of the levels of a profile's evidence."""


def mean_name(means: Iterable[Aggregate]) -> str:
    """Return the name of the mean over the workloads in tables."""
    return "mean by calls and time" if any(mean.shares for mean in means) else "geometric mean"


best_round = order.best_round
mean_ceiling_share = stopping.mean_ceiling_share


def baseline_round(rounds: Iterable[RoundRecord]) -> RoundRecord | None:
    """Return the first accepted round that was not struck; progress is counted from it."""
    return next((r for r in rounds if r.verdict.accepted), None)


def reported_evaluation(rounds: Iterable[RoundRecord], final: Evaluation | None) -> Evaluation | None:
    """Return the evaluation that represents the best version: its final race if that passed, else its round's."""
    if final is not None and final.correct and final.timed:
        return final
    winner = best_round(rounds)
    return winner.evaluation if winner else None


def all_evaluations(rounds: Iterable[RoundRecord], final: Evaluation | None) -> list[Evaluation]:
    """Return every evaluation that the campaign's pages use."""
    return [*(r.evaluation for r in rounds), *([final] if final else [])]


def rolled_back_rounds(rounds: Iterable[RoundRecord]) -> list[RoundRecord]:
    """Return the rounds whose version the campaign did not go on from."""
    return [r for r in rounds if not r.evaluation.decision.verdict.stands]


def struck_rounds(rounds: Iterable[RoundRecord]) -> list[RoundRecord]:
    """Return the rounds whose version stood and was later removed from the lineage."""
    return [r for r in rounds if r.struck]


def verdict_text(record: RoundRecord) -> str:
    """Return the lab's verdict, with marks of a strike, a reason unknown, attempts and tries."""
    attempts = f", attempts {record.attempts}" if record.attempts > 1 else ""
    tried = f", {record.tried} variants tried" if record.tried > 1 else ""
    mark = ", struck" if record.struck else ", reason unknown" if record.unexplained else ""
    return f"{record.evaluation.decision.verdict}{mark}{attempts}{tried}"


def worst_error(evaluation: Evaluation) -> float | None:
    """Return the largest error over the workloads as a share of its bound; None if nothing was graded."""
    return max((r.correctness.worst for r in evaluation.results if r.correctness), default=None)


def timed_sides(evaluation: Evaluation) -> list[str]:
    """Return the other sides that any workload was timed against: best, reference, then peers by name."""
    names = {c.against for timing in evaluation.timed.values() for c in timing.comparisons}
    return sorted(names, key=lambda side: (side != BEST, side != REFERENCE, side))


def side_name(side: str) -> str:
    """Return the display name of a side."""
    return SIDES.get(side, side)


def has_mean(rounds: Iterable[RoundRecord], side: str) -> bool:
    """Return whether any round's version was timed against a side at every workload."""
    return any(record.evaluation.aggregate(side) for record in rounds)


def sort_results(results: Iterable[WorkloadResult]) -> list[WorkloadResult]:
    """Return failed workloads first, then timed ones, then those graded for correctness only."""
    return sorted(results, key=lambda r: (r.status is Status.PASSED, r.timing is None))


def best_peer(means: Iterable[Aggregate]) -> Aggregate | None:
    """Return the peer with the smallest speedup, torch.compile included; None if no peer was raced."""
    peers = [mean for mean in means if mean.against not in (BEST, REFERENCE)]
    return min(peers, key=lambda mean: mean.speedup, default=None)


def headline_sides(manifest: Manifest) -> list[str]:
    """Return the sides that a report must mention, measured or not."""
    return list(dict.fromkeys((REFERENCE, COMPILED, *manifest.peers)))


def ratio_to_baseline(evaluation: Evaluation, first: RoundRecord | None) -> float | None:
    """Return the speedup over the baseline, over the workloads at which both were timed.

    Both sides were paired with the reference in their own
    runs, so that drift of the machine between rounds does not
    count. None if either was not timed against the reference.
    """
    if first is None:
        return None
    before, after = _over_reference(first.evaluation), _over_reference(evaluation)
    logs = [log(after[name] / before[name]) for name in sorted(before.keys() & after.keys())]
    return exp(fsum(logs) / len(logs)) if logs else None


def first_failure(evaluation: Evaluation) -> str | None:
    """Return the first failure with workload, status and message; None if all workloads passed."""
    failed = (r for r in evaluation.results if r.status is not Status.PASSED)
    return next((f"{r.status} at {r.workload}: {r.message}" for r in failed), None)


def unseen_text(evaluation: Evaluation) -> str:
    """Return how many drawn shapes of each class held, and the gain over the best version at one of them."""
    classes = (
        f"{shapes.held} {shapes.kind}" + (f" ({format.factor(shapes.speedup)})" if shapes.speedup else "")
        for shapes in evaluation.unseen
    )
    return f"{', '.join(classes)} held"


def rerun_text(rerun: Rerun) -> str:
    """Return the result of judging a record again: `renewed by gate 2 on 2026-11-22: holds`."""
    provenance = rerun.evaluation.provenance
    return f"renewed by gate {provenance.gate_version} on {provenance.measured[:10]}: {rerun.claim.lower()}"


def key_finding(record: RoundRecord) -> str:
    """Return the most important finding of a round: its tip,
    else its lesson's reason, else the failure or decision."""
    tip = record.lesson.tip.takeaway if record.lesson.tip else ""
    return tip or record.lesson.reason or first_failure(record.evaluation) or record.evaluation.decision.reason


def wall_minutes(rounds: Iterable[RoundRecord]) -> int:
    """Return the minutes from opening to closing, summed over rounds; a clock that went backwards counts as 0."""
    return sum(max(0, int((_time(r.closed) - _time(r.opened)).total_seconds() // 60)) for r in rounds)


def gate_seconds(judged: Iterable[Evaluation]) -> float:
    """Return the wall time of the gate's steps in seconds."""
    return fsum(step.seconds for evaluation in judged for step in evaluation.steps)


def list_spends(rounds: Iterable[RoundRecord]) -> list[Spend]:
    """Return the cost of the agents in closed rounds, one entry for each query."""
    return [spend for record in rounds for spend in record.spent]


def total_spent(rounds: Iterable[RoundRecord]) -> Spent | None:
    """Return the total cost of the agents; None if no agent was queried."""
    queries = list_spends(rounds)
    return Spent.of(queries) if queries else None


def spent_by(rounds: Iterable[RoundRecord], field: Literal["phase", "agent"]) -> dict[str, Spent]:
    """Return the total cost by phase or agent, in the order of their first query."""
    queries = list_spends(rounds)
    names = dict.fromkeys(str(getattr(spend, field)) for spend in queries)
    return {name: Spent.of(spend for spend in queries if getattr(spend, field) == name) for name in names}


def compounded_gain(rounds: Iterable[RoundRecord]) -> float | None:
    """Return the best version's gain over the baseline, compounded over the accepted rounds; 0.2 is 20 %."""
    accepted = [r for r in rounds if r.verdict.accepted]
    gains = [r.outcome.gain for r in accepted if r.outcome.gain is not None]
    return prod(1 + gain for gain in gains) - 1 if gains else None


def usd_per_percent(rounds: Sequence[RoundRecord]) -> float | None:
    """Return the dollars for one percent of compounded gain; None if cost or gain is unknown or zero."""
    total, gained = total_spent(rounds), compounded_gain(rounds)
    if total is None or gained is None or gained <= 0 or total.untold == total.queries:
        return None
    return total.usd / (100 * gained)


def evidence_levels(rounds: Iterable[RoundRecord]) -> list[str]:
    """Return the levels of evidence of the profiles in words, the strongest first."""
    profiles = [p for r in rounds for p in (r.profile, r.profile_after) if p is not None]
    levels = {p.evidence for p in profiles}
    return [words for level, words in EVIDENCE.items() if level in levels]


def timing_clocks(judged: Iterable[Evaluation]) -> list[str]:
    """Return the clocks that timed: `events`, `parent`."""
    return sorted({timing.clock for evaluation in judged for timing in evaluation.timed.values()})


def not_measured(manifest: Manifest, rounds: Sequence[RoundRecord], final: Evaluation | None = None) -> list[str]:
    """Return, one sentence each, the results that a reader might expect but that were not measured."""
    winner, evaluation = best_round(rounds), reported_evaluation(rounds, final)
    if manifest.port:
        return [
            "Speed: a port campaign times nothing.",
            "Numbers of the compiled kernels: only the interpreter ran them.",
        ]
    if winner is None or evaluation is None:
        return ["No version was accepted: there is no best version to measure."]
    return [
        *_failed_race(final, evaluation, winner),
        *_missing_sides(manifest, rounds, winner, evaluation),
        *_missing_steps(evaluation),
        *_missing_profile(winner),
        *_mixed_conditions(all_evaluations(rounds, final)),
    ]


def _over_reference(evaluation: Evaluation) -> dict[str, float]:
    comparisons = {name: timing.against(REFERENCE) for name, timing in evaluation.timed.items()}
    return {name: comparison.speedup for name, comparison in comparisons.items() if comparison is not None}


def _failed_race(final: Evaluation | None, reported: Evaluation, winner: RoundRecord) -> list[str]:
    if final is None or final is reported:
        return []
    reason = first_failure(final) or final.decision.reason
    if not final.is_wrong:
        return [f"The final race did not pass: {reason}"]
    return [
        f"**The final race found {winner.solution} wrong**, and `best` takes the version before it. "
        f"`warpsmith strike {winner.round} --reason REASON` removes it from the lineage. {reason}"
    ]


def _missing_sides(
    manifest: Manifest, rounds: Sequence[RoundRecord], winner: RoundRecord, evaluation: Evaluation
) -> list[str]:
    sentences = []
    for side in headline_sides(manifest):
        if evaluation.aggregate(side) is None:
            numbers = [f"round {r.round}" for r in rounds if r.evaluation.aggregate(side) is not None]
            others = f"; {', '.join(numbers)} did" if numbers else ""
            sentences.append(f"{winner.solution} has no result against {side_name(side)}{others}.")
    return sentences


def _missing_steps(evaluation: Evaluation) -> list[str]:
    sentences = [
        f"Step skipped, {step.name}: {'; '.join(step.notes) or 'no reason recorded'}."
        for step in evaluation.steps
        if step.state == "skipped"
    ]
    untimed = sum(1 for r in evaluation.results if r.status is Status.PASSED and r.timing is None)
    if untimed:
        sentences.append(f"Graded for correctness only, not timed: {count_noun(untimed, 'workload')}.")
    if evaluation.noise is None:
        sentences.append("No A/A noise floor was applied.")
    return sentences


def _missing_profile(winner: RoundRecord) -> list[str]:
    if winner.profile_after is None:
        return [f"{winner.solution} was not profiled."]
    return [winner.profile_after.without] if winner.profile_after.without else []


def machine_text(machine: Machine) -> str:
    """Describe a machine: its GPU and driver, if it has one, then its processor."""
    return (
        f"{machine.device}, driver {machine.driver}, {machine.processor}" if machine.driver else machine.processor
    )


def _mixed_conditions(judged: Sequence[Evaluation]) -> list[str]:
    provenances = [evaluation.provenance for evaluation in judged]
    sentences = []
    if len(machines := sorted({p.machine.id for p in provenances})) > 1:
        sentences.append(f"Judgements ran on {len(machines)} machines; times are not compared across machines.")
    if other_gates := [f"{e.language}/{e.version}" for e in judged if e.provenance.gate_version != GATE_VERSION]:
        sentences.append(
            f"Judged by a gate version other than {GATE_VERSION}: {', '.join(dict.fromkeys(other_gates))}."
        )
    if len(definitions := {p.definition_sha256 for p in provenances}) > 1:
        sentences.append(
            f"The definition changed during the campaign: {len(definitions)} versions of it were judged."
        )
    return sentences


def _time(minute: str) -> datetime:
    return datetime.strptime(minute, "%Y-%m-%d %H:%M")
