"""Rerun: judge a record's version again, against the same sides, and compare the result with its claim."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from warpsmith.campaign import lab_requests
from warpsmith.campaign.evidence import stored_evaluations
from warpsmith.campaign.evidence.stored_evaluations import StoredEvaluation
from warpsmith.campaign.history import records, solutions, store
from warpsmith.campaign.history.records import StoredRound
from warpsmith.campaign.history.solutions import Solution
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.jobs.send import Conditions
from warpsmith.core.campaign import Manifest
from warpsmith.core.evaluation import BEST, REFERENCE, Aggregate, Evaluation, Verdict
from warpsmith.core.evidence import Claim, Rerun
from warpsmith.core.text import Tell
from warpsmith.errors import MissingInput, Misuse
from warpsmith.execution import contexts
from warpsmith.lab.operator import definition_file
from warpsmith.ledger.store import write_model
from warpsmith.project import Project


def rerun_record(
    project: Project,
    path: Path,
    target: str | None = None,
    tell: Tell = lambda _: None,
    context: str | None = None,
) -> tuple[StoredEvaluation, Rerun, Path]:
    """Judge a record's version again and write the result next to the campaign's rounds.

    Args:
        project: the project.
        path: the record.
        target: kind of device; by default that of the record.
        tell: takes lines of progress.
        context: machine that judges, by its name among the contexts; by default that of the campaign.

    Returns:
        The stored evaluation, the rerun, and the rerun's file.

    Raises:
        MissingInput: the record, or the version that was best at its time, does not exist.
        CorruptRecord: the record, or another of its campaign, is torn or was edited.
        Misuse: it is no evaluation, or the version, the best version or the definition has changed since.
        Busy: another process holds the campaign.
        MachineLacks: the language cannot run here.
    """
    judged = stored_evaluations.find_evaluation(project, path)
    with _hold(judged.campaign, project.relative(judged.path)):
        for change in stored_evaluations.list_changes(project, judged):
            raise Misuse(change)
        evaluation = _judge_again(project, judged, target, context, tell)
        claim, reason = compare_evaluations(judged.evaluation, evaluation)
        result = Rerun(
            record=project.relative(judged.path),
            record_sha256=judged.sha256,
            claim=claim,
            reason=reason,
            evaluation=evaluation,
        )
        number = max((number for number, _ in stored_evaluations.read_reruns(judged)), default=0) + 1
        path = judged.reruns / f"{judged.stem}-{number}.json"
        write_model(path, result)
    return judged, result, path


def compare_evaluations(before: Evaluation, after: Evaluation) -> tuple[Claim, str]:
    """Compare a new evaluation with an earlier one; return what became of the claim, and the reason."""
    if before.decision.verdict is Verdict.INVALID:
        return Claim.UNKNOWN, "The record itself is INVALID: it claims nothing."
    if after.decision.verdict is Verdict.INVALID:
        return Claim.UNKNOWN, f"The machine failed: {after.decision.reason}"
    kinds = [evaluation.provenance.machine.target for evaluation in (before, after)]
    if kinds[0] != kinds[1]:
        return Claim.UNKNOWN, f"It was judged on {kinds[0]} then and on {kinds[1]} now, which do not compare."
    if before.correct != after.correct:
        return Claim.REFUTED, f"It was {before.status} and is {after.status} now: {after.decision.reason}"
    if before.port and after.port:
        old, new = before.decision.verdict, after.decision.verdict
        claim = Claim.HOLDS if old is new else Claim.REFUTED
        return claim, f"It was {old} and is {new} now: {after.decision.reason}"
    devices = [evaluation.provenance.machine.device for evaluation in (before, after)]
    if devices[0] != devices[1]:
        return Claim.UNKNOWN, f"It was timed on {devices[0]} then and on {devices[1]} now, which do not compare."
    if before.decision.verdict.accepted and after.decision.ambiguous:
        return Claim.UNKNOWN, f"The timing stayed inside the noise: {after.decision.reason}"
    if before.decision.verdict.accepted != after.decision.verdict.accepted:
        old, new = before.decision.verdict, after.decision.verdict
        return Claim.REFUTED, f"It was {old} and is {new} now: {after.decision.reason}"
    if not before.decision.verdict.accepted:
        return Claim.HOLDS, f"It is not accepted now either: {after.decision.reason}"
    return _compare_speed(before, after)


def _compare_speed(before: Evaluation, after: Evaluation) -> tuple[Claim, str]:
    both = [(before.gain, after.gain), (before.aggregate(REFERENCE), after.aggregate(REFERENCE))]
    pairs = [(old, new) for old, new in both if old and new]
    if not pairs:
        return Claim.UNKNOWN, f"The two evaluations were timed against no common side of: {BEST}, {REFERENCE}."
    for old, new in pairs:
        if new.interval.high < old.interval.low:
            return Claim.WEAKER, f"Over {old.against} it was {_speedup(old)} and is {_speedup(new)} now."
    old, new = pairs[0]
    return Claim.HOLDS, f"Over {old.against} it was {_speedup(old)} and is {_speedup(new)} now."


def _speedup(mean: Aggregate) -> str:
    return f"{mean.speedup:.3g}x [{mean.interval.low:.3g}, {mean.interval.high:.3g}]"


def _hold(campaign: Campaign | None, record: str) -> AbstractContextManager[None]:
    # Hold it during the evaluation as well: work on the campaign meanwhile would disturb the timing.
    return store.hold_campaign(campaign, f"warpsmith evidence rerun {record}") if campaign else nullcontext()


def _judge_again(
    project: Project, judged: StoredEvaluation, target: str | None, context: str | None, tell: Tell
) -> Evaluation:
    """Judge it under the same conditions: the same sides, workload sets and thresholds."""
    evaluation = judged.evaluation
    version = solutions.find_solution(
        project, evaluation.definition, f"{evaluation.language}/{evaluation.version}"
    )
    best = _best(project, judged)
    manifest = judged.campaign.manifest if judged.campaign else _manifest_of(evaluation)
    chosen = manifest.context if context is None else contexts.chosen_context(project, context)
    manifest = manifest.model_copy(update={"target": target or manifest.target, "context": chosen})
    raced = {comparison.against for timing in evaluation.timed.values() for comparison in timing.comparisons}
    conditions = Conditions(
        best=best,
        sets=lab_requests.timed_sets(
            definition_file.load_definition(project.definition_path(manifest.target_op)).definition, evaluation
        ),
        peers=tuple(sorted((raced | evaluation.absent.keys()) - {BEST, REFERENCE})),
        judgement=evaluation.decision.judgement,
    )
    return lab_requests.judge_solution(project, manifest, version, tell, conditions)


def _best(project: Project, judged: StoredEvaluation) -> Solution | None:
    """Find the version that was best then; None if there was none, Misuse if its file has changed."""
    provenance, record = judged.evaluation.provenance, project.relative(judged.path)
    action = "put it back"
    if judged.stored_round and judged.campaign:
        parent = judged.stored_round.record.parent
        if parent is None:
            return None
        stored = _round_of(judged.campaign, parent, judged.stored_round)
        best, sha256 = (
            solutions.find_solution(project, judged.evaluation.definition, parent),
            stored.record.snapshot_sha256,
        )
        snapshot = stored.folder / stored.record.snapshot
        action = f"put {project.relative(snapshot)} back in its place" if snapshot.exists() else "restore it"
    elif provenance.best and provenance.best_sha256:
        best, sha256 = (
            lab_requests.locate_version(project, project.root / provenance.best)[1],
            provenance.best_sha256,
        )
    elif judged.evaluation.aggregate(BEST):
        raise Misuse(f"{record} does not say which version it was timed against; use `warpsmith judge --against`.")
    else:
        return None
    if not records.has_content(best.path, sha256):
        path = project.relative(best.path)
        raise Misuse(f"{record} was timed against {best.name}, and {path} has changed since; {action}.")
    return best


def _round_of(campaign: Campaign, version: str, before: StoredRound) -> StoredRound:
    """Find the last round of a version before another round; raises MissingInput."""
    earlier = [stored for stored in campaign.closed_rounds() if stored.number < before.number]
    matches = [stored for stored in earlier if stored.record.solution == version]
    if not matches:
        folder = campaign.project.relative(before.folder)
        raise MissingInput(f"{folder} was timed against {version}, and no earlier round of the campaign has it.")
    return matches[-1]


def _manifest_of(evaluation: Evaluation) -> Manifest:
    return Manifest(
        campaign="none",
        target_op=evaluation.definition,
        target=evaluation.target,
        target_language=evaluation.language,
        created=evaluation.provenance.measured,
    )
