"""What pages say about rounds beyond the records' own fields; never a number that nothing measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from math import exp, fsum, log, prod
from typing import Literal

from warpsmith.campaign.history import records as order
from warpsmith.campaign.history import stopping
from warpsmith.core.campaign import Manifest, RoundRecord
from warpsmith.core.evaluation import BEST, COMPILED, GATE_VERSION, REFERENCE, Aggregate, Evaluation, Status
from warpsmith.core.evidence import Rerun
from warpsmith.core.hardware import Machine
from warpsmith.core.spend import Spend, Spent
from warpsmith.reporting.format import counted

SIDES = {BEST: "the best version before", REFERENCE: "PyTorch eager"}
"""What people call them; a peer goes by its own name."""

EVIDENCE = {
    "counters": "hardware counters",
    "timings": "timings only",
    "static": "compile and arithmetic only",
}
"""Levels of a profile's evidence in words."""

best = order.best
ceiling_share = stopping.ceiling_share


def baseline(rounds: Iterable[RoundRecord]) -> RoundRecord | None:
    """The first accepted round that was not struck: what progress is counted from."""
    return next((r for r in rounds if r.verdict.accepted), None)


def speaks(rounds: Iterable[RoundRecord], final: Evaluation | None) -> Evaluation | None:
    """What the best version is reported by: its race at the end where that held, else its round's judgement."""
    if final is not None and final.correct and final.timed:
        return final
    winner = best(rounds)
    return winner.evaluation if winner else None


def judgements(rounds: Iterable[RoundRecord], final: Evaluation | None) -> list[Evaluation]:
    """Every judgement that the campaign's pages rest on."""
    return [*(r.evaluation for r in rounds), *([final] if final else [])]


def rolled_back(rounds: Iterable[RoundRecord]) -> list[RoundRecord]:
    """Rounds whose version never joined the lineage."""
    return [r for r in rounds if not r.evaluation.decision.verdict.accepted]


def struck(rounds: Iterable[RoundRecord]) -> list[RoundRecord]:
    """Rounds whose version was accepted and left the lineage later."""
    return [r for r in rounds if r.struck]


def verdict(record: RoundRecord) -> str:
    """The lab's verdict, and whether the version was struck since: `ACCEPT, struck`."""
    return f"{record.evaluation.decision.verdict}{', struck' if record.struck else ''}"


def sides(evaluation: Evaluation) -> list[str]:
    """The other sides that any workload was timed against: best, reference, then peers by name."""
    found = {c.against for timing in evaluation.timed.values() for c in timing.comparisons}
    return sorted(found, key=lambda side: (side != BEST, side != REFERENCE, side))


def side_name(side: str) -> str:
    """What people call a side."""
    return SIDES.get(side, side)


def best_peer(means: Iterable[Aggregate]) -> Aggregate | None:
    """The peer that the version beats by least, torch.compile among them; None where no peer was raced."""
    peers = [found for found in means if found.against not in (BEST, REFERENCE)]
    return min(peers, key=lambda found: found.speedup, default=None)


def headline_sides(manifest: Manifest) -> list[str]:
    """The sides that a report must speak of, measured or not."""
    return list(dict.fromkeys((REFERENCE, COMPILED, *manifest.peers)))


def ratio_to_baseline(evaluation: Evaluation, first: RoundRecord | None) -> float | None:
    """How many times faster than the baseline, over the workloads that both were timed at.

    Both sides were paired with the reference in their own runs, so a machine that drifts between rounds
    does not count. None where either was not timed against it.
    """
    if first is None:
        return None
    before, after = _over_reference(first.evaluation), _over_reference(evaluation)
    logs = [log(after[name] / before[name]) for name in sorted(before.keys() & after.keys())]
    return exp(fsum(logs) / len(logs)) if logs else None


def failure(evaluation: Evaluation) -> str | None:
    """The first thing that failed: workload, status and message; None where all passed."""
    found = (r for r in evaluation.results if r.status is not Status.PASSED)
    return next((f"{r.status} at {r.workload}: {r.message}" for r in found), None)


def renewed(rerun: Rerun) -> str:
    """What judging a record again said of it: `renewed by gate 2 on 2026-11-22: holds`."""
    found = rerun.evaluation.provenance
    return f"renewed by gate {found.gate_version} on {found.measured[:10]}: {rerun.claim.lower()}"


def key_finding(record: RoundRecord) -> str:
    """The one thing to remember of a round: its tip, else its lesson's reason, else what failed or decided."""
    tip = record.lesson.tip.takeaway if record.lesson.tip else ""
    return tip or record.lesson.reason or failure(record.evaluation) or record.evaluation.decision.reason


def wall_minutes(rounds: Iterable[RoundRecord]) -> int:
    """From opening to closing, over all rounds; a round whose clock went backwards counts nothing."""
    return sum(max(0, int((_time(r.closed) - _time(r.opened)).total_seconds() // 60)) for r in rounds)


def gate_seconds(judged: Iterable[Evaluation]) -> float:
    """Wall time that the gate's steps took."""
    return fsum(step.seconds for evaluation in judged for step in evaluation.steps)


def spends(rounds: Iterable[RoundRecord]) -> list[Spend]:
    """What the agents of closed rounds cost, one entry a query."""
    return [spend for record in rounds for spend in record.spent]


def spent(rounds: Iterable[RoundRecord]) -> Spent | None:
    """The sum; None where no agent was asked."""
    found = spends(rounds)
    return Spent.of(found) if found else None


def spent_by(rounds: Iterable[RoundRecord], what: Literal["phase", "agent"]) -> dict[str, Spent]:
    """The sum of each phase or agent, in the order in which they were first asked."""
    found = spends(rounds)
    names = dict.fromkeys(str(getattr(spend, what)) for spend in found)
    return {name: Spent.of(spend for spend in found if getattr(spend, what) == name) for name in names}


def compounded_gain(rounds: Iterable[RoundRecord]) -> float | None:
    """How much faster the best version is than the baseline, by the gains of the accepted rounds; 0.2 is 20 %."""
    accepted = [r for r in rounds if r.verdict.accepted]
    gains = [r.outcome.gain for r in accepted if r.outcome.gain is not None]
    return prod(1 + gain for gain in gains) - 1 if gains else None


def usd_per_percent(rounds: Sequence[RoundRecord]) -> float | None:
    """Dollars for one percent of compounded gain; None where nothing was spent, told or gained."""
    total, gained = spent(rounds), compounded_gain(rounds)
    if total is None or gained is None or gained <= 0 or total.untold == total.queries:
        return None
    return total.usd / (100 * gained)


def evidence(rounds: Iterable[RoundRecord]) -> list[str]:
    """The levels of evidence that profiles rested on, in words, the strongest first."""
    profiles = [p for r in rounds for p in (r.profile, r.profile_after) if p is not None]
    levels = {p.evidence for p in profiles}
    return [words for level, words in EVIDENCE.items() if level in levels]


def clocks(judged: Iterable[Evaluation]) -> list[str]:
    """Whose clocks timed: `events`, `parent`."""
    return sorted({timing.clock for evaluation in judged for timing in evaluation.timed.values()})


def not_measured(manifest: Manifest, rounds: Sequence[RoundRecord], final: Evaluation | None = None) -> list[str]:
    """What a reader might take for measured and is not, one sentence each."""
    winner, said = best(rounds), speaks(rounds, final)
    if winner is None or said is None:
        return ["No version was accepted: there is no best version to measure."]
    return [
        *_failed_race(final, said),
        *_missing_sides(manifest, rounds, winner, said),
        *_missing_steps(said),
        *_missing_profile(winner),
        *_mixed_conditions(judgements(rounds, final)),
    ]


def _over_reference(evaluation: Evaluation) -> dict[str, float]:
    found = {name: timing.against(REFERENCE) for name, timing in evaluation.timed.items()}
    return {name: comparison.speedup for name, comparison in found.items() if comparison is not None}


def _failed_race(final: Evaluation | None, said: Evaluation) -> list[str]:
    if final is None or final is said:
        return []
    return [f"The race at the end did not hold: {failure(final) or final.decision.reason}"]


def _missing_sides(
    manifest: Manifest, rounds: Sequence[RoundRecord], winner: RoundRecord, evaluation: Evaluation
) -> list[str]:
    said = []
    for side in headline_sides(manifest):
        if evaluation.aggregate(side) is None:
            where = [f"round {r.round}" for r in rounds if r.evaluation.aggregate(side) is not None]
            others = f"; {', '.join(where)} did" if where else ""
            said.append(f"{winner.solution} has no result against {side_name(side)}{others}.")
    return said


def _missing_steps(evaluation: Evaluation) -> list[str]:
    said = [
        f"Step skipped, {step.name}: {'; '.join(step.notes) or 'no reason recorded'}."
        for step in evaluation.steps
        if step.state == "skipped"
    ]
    untimed = sum(1 for r in evaluation.results if r.status is Status.PASSED and r.timing is None)
    if untimed:
        said.append(f"Graded for correctness only, not timed: {counted(untimed, 'workload')}.")
    if evaluation.noise is None:
        said.append("No A/A noise floor was in force.")
    return said


def _missing_profile(winner: RoundRecord) -> list[str]:
    if winner.profile_after is None:
        return [f"{winner.solution} was not profiled."]
    return [winner.profile_after.without] if winner.profile_after.without else []


def machine(found: Machine) -> str:
    """A machine in words: its GPU and driver, where it has one, then its processor."""
    return f"{found.device}, driver {found.driver}, {found.processor}" if found.driver else found.processor


def _mixed_conditions(judged: Sequence[Evaluation]) -> list[str]:
    found = [evaluation.provenance for evaluation in judged]
    said = []
    if len(machines := sorted({p.machine.id for p in found})) > 1:
        said.append(f"Judgements ran on {len(machines)} machines; times are never compared across them.")
    if old := [f"{e.language}/{e.version}" for e in judged if e.provenance.gate_version != GATE_VERSION]:
        said.append(f"Judged by another gate version than {GATE_VERSION}: {', '.join(dict.fromkeys(old))}.")
    if len(definitions := {p.definition_sha256 for p in found}) > 1:
        said.append(f"The definition changed within the campaign: {len(definitions)} versions of it were judged.")
    return said


def _time(minute: str) -> datetime:
    return datetime.strptime(minute, "%Y-%m-%d %H:%M")
