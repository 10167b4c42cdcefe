"""Rerun: a record's version judged again, against what it was judged against, and what became of its claim."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from warpsmith import files
from warpsmith.campaign import lab_requests
from warpsmith.campaign.evidence import stored_evaluations
from warpsmith.campaign.evidence.stored_evaluations import StoredEvaluation
from warpsmith.campaign.history import records, solutions, store
from warpsmith.campaign.history.records import StoredRound
from warpsmith.campaign.history.solutions import Solution
from warpsmith.campaign.history.store import Campaign
from warpsmith.core.campaign import Manifest
from warpsmith.core.definition import Definition, WorkloadSet
from warpsmith.core.evaluation import BEST, REFERENCE, Aggregate, Evaluation, Verdict
from warpsmith.core.evidence import Claim, Rerun
from warpsmith.core.progress import Tell
from warpsmith.errors import MissingInput, Misuse
from warpsmith.lab.gate.request import Request
from warpsmith.project import Project


def rerun_record(
    project: Project, path: Path, target: str | None = None, tell: Tell = lambda _: None
) -> tuple[StoredEvaluation, Rerun, Path]:
    """Judge a record's version again and keep what came of it beside the campaign's rounds; returns all three.

    Raises:
        MissingInput: the record or the best version of its time is not there.
        CorruptRecord: the record, or another of its campaign, is torn or was edited.
        Misuse: it is no judgement, or the version, the best version or the definition has changed since.
        Busy: another process holds the campaign.
        MachineLacks: the language cannot run here.
    """
    judged = stored_evaluations.find_evaluation(project, path)
    with _held(judged.campaign, project.relative(judged.path)):
        for change in stored_evaluations.list_changes(project, judged):
            raise Misuse(change)
        evaluation = lab_requests.judge_version(_request(project, judged, target, tell))
        claim, reason = compare_evaluations(judged.evaluation, evaluation)
        made = Rerun(
            record=project.relative(judged.path),
            record_sha256=judged.sha256,
            claim=claim,
            reason=reason,
            evaluation=evaluation,
        )
        number = max((number for number, _ in stored_evaluations.read_reruns(judged)), default=0) + 1
        place = judged.reruns / f"{judged.stem}-{number}.json"
        files.write_file(place, made.model_dump_json(indent=2) + "\n")
    return judged, made, place


def compare_evaluations(before: Evaluation, after: Evaluation) -> tuple[Claim, str]:
    """What a new judgement says of an earlier one's claim, and why."""
    if before.decision.verdict is Verdict.INVALID:
        return Claim.UNKNOWN, "The record is INVALID itself: it claims nothing."
    if after.decision.verdict is Verdict.INVALID:
        return Claim.UNKNOWN, f"The machine failed: {after.decision.reason}"
    kinds = [one.provenance.machine.target for one in (before, after)]
    if kinds[0] != kinds[1]:
        return Claim.UNKNOWN, f"It was judged on {kinds[0]} then and on {kinds[1]} now, which do not compare."
    if before.correct != after.correct:
        return Claim.REFUTED, f"It was {before.status} and is {after.status} now: {after.decision.reason}"
    if before.decision.verdict.accepted and after.decision.ambiguous:
        return Claim.UNKNOWN, f"The timing stayed inside the noise: {after.decision.reason}"
    if before.decision.verdict.accepted != after.decision.verdict.accepted:
        was, now = before.decision.verdict, after.decision.verdict
        return Claim.REFUTED, f"It was {was} and is {now} now: {after.decision.reason}"
    if not before.decision.verdict.accepted:
        return Claim.HOLDS, f"It is not accepted now either: {after.decision.reason}"
    return _compare_speed(before, after)


def _compare_speed(before: Evaluation, after: Evaluation) -> tuple[Claim, str]:
    both = [(before.gain, after.gain), (before.aggregate(REFERENCE), after.aggregate(REFERENCE))]
    pairs = [(old, new) for old, new in both if old and new]
    if not pairs:
        return Claim.UNKNOWN, f"The two judgements were timed against no common side of: {BEST}, {REFERENCE}."
    for old, new in pairs:
        if new.interval.high < old.interval.low:
            return Claim.WEAKER, f"Over {old.against} it was {_speedup(old)} and is {_speedup(new)} now."
    old, new = pairs[0]
    return Claim.HOLDS, f"Over {old.against} it was {_speedup(old)} and is {_speedup(new)} now."


def _speedup(mean: Aggregate) -> str:
    return f"{mean.speedup:.3g}x [{mean.interval.low:.3g}, {mean.interval.high:.3g}]"


def _held(campaign: Campaign | None, record: str) -> AbstractContextManager[None]:
    # From before the judgement: whoever works on the campaign meanwhile would disturb the timing.
    return store.hold_campaign(campaign, f"warpsmith evidence rerun {record}") if campaign else nullcontext()


def _request(project: Project, judged: StoredEvaluation, target: str | None, tell: Tell) -> Request:
    """What was asked of the lab then: the same sides, workload sets and thresholds."""
    evaluation = judged.evaluation
    version = solutions.find_solution(
        project, evaluation.definition, f"{evaluation.language}/{evaluation.version}"
    )
    best = _best(project, judged)
    manifest = judged.campaign.manifest if judged.campaign else _alone(evaluation)
    manifest = manifest.model_copy(update={"target": target or manifest.target})
    raced = {comparison.against for timing in evaluation.timed.values() for comparison in timing.comparisons}
    peers = tuple(sorted((raced | evaluation.absent.keys()) - {BEST, REFERENCE}))
    asked = lab_requests.lab_request(project, manifest, version, tell, best=best, peers=peers)
    return replace(asked, sets=_sets(asked.file.definition, evaluation))


def _best(project: Project, judged: StoredEvaluation) -> Solution | None:
    """The best version of that time, as it was then."""
    found, shown = judged.evaluation.provenance, project.relative(judged.path)
    mend = "put it back"
    if judged.stored_round and judged.campaign:
        parent = judged.stored_round.record.parent
        if parent is None:
            return None
        kept = _round_of(judged.campaign, parent, judged.stored_round)
        best, sha256 = (
            solutions.find_solution(project, judged.evaluation.definition, parent),
            kept.record.snapshot_sha256,
        )
        snapshot = kept.folder / kept.record.snapshot
        mend = f"put {project.relative(snapshot)} back in its place" if snapshot.exists() else "restore it"
    elif found.best and found.best_sha256:
        best, sha256 = lab_requests.locate_version(project, project.root / found.best)[1], found.best_sha256
    elif judged.evaluation.aggregate(BEST):
        raise Misuse(f"{shown} does not say which version it was raced with; `warpsmith judge --against` it.")
    else:
        return None
    if not records.has_content(best.path, sha256):
        where = project.relative(best.path)
        raise Misuse(f"{shown} was raced with {best.name}, and {where} has changed since; {mend}.")
    return best


def _round_of(campaign: Campaign, version: str, before: StoredRound) -> StoredRound:
    """The last round of a version before another round."""
    earlier = [kept for kept in campaign.closed_rounds() if kept.record.round < before.record.round]
    found = next((kept for kept in reversed(earlier) if kept.record.solution == version), None)
    if found is None:
        shown = campaign.project.relative(before.folder)
        raise MissingInput(f"{shown} was raced with {version}, and no round of the campaign has that.")
    return found


def _sets(definition: Definition, evaluation: Evaluation) -> tuple[WorkloadSet, ...]:
    """The sets with a workload that was timed; a version that failed before is judged as rounds are."""
    timed = {workload.set for workload in definition.workloads if workload.name in evaluation.timed}
    return tuple(name for name in lab_requests.EVERYTHING if name in timed) or ("representative",)


def _alone(evaluation: Evaluation) -> Manifest:
    return Manifest(
        campaign="none",
        target_op=evaluation.definition,
        target=evaluation.target,
        target_language=evaluation.language,
        created=evaluation.provenance.measured,
    )
