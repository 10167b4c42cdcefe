"""`warpsmith judge`: check, time and decide one version."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console, durations
from warpsmith.cli.campaign import rounds, version
from warpsmith.cli.campaign.version import DueFile, VersionCampaign
from warpsmith.cli.options import Context, Json, Target
from warpsmith.errors import Ambiguous, MachineFailed, Misuse, SolutionFailed

if TYPE_CHECKING:
    from warpsmith.campaign.history.solutions import Solution
    from warpsmith.campaign.history.store import Campaign
    from warpsmith.core.campaign import Manifest
    from warpsmith.core.evaluation import Evaluation
    from warpsmith.project import Project


def judge_command(
    solution: DueFile = None,
    campaign: VersionCampaign = None,
    target: Target = None,
    against: Annotated[Path | None, typer.Option(help="Another version, which this one must beat.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Run correctness and probes only; record nothing.")
    ] = False,
    context: Context = None,
    as_json: Json = False,
) -> None:
    """Judge a version: correctness, timing, decision. In a campaign the verdict is its VERIFY step.

    Without a version it is the one that is due in the campaign.

    A version that does not build costs an attempt and no round: fix it, and judge it again.

    Exit code 1: the version is to be rolled back, or did not build; 4: the machine failed; 6: the gain is within
    the noise.
    """
    from warpsmith.campaign import lab_requests
    from warpsmith.campaign.history import store
    from warpsmith.campaign.jobs.send import Conditions
    from warpsmith.campaign.rounds import attempts, open_round, state
    from warpsmith.project import find_project

    version.refuse_with_campaign(campaign, {"--target": target, "--against": against, "--context": context})
    if context and target is None:
        raise Misuse(
            "--context judges outside of a campaign, so it needs --target; a campaign has its own context."
        )
    if check and against:
        raise Misuse("--check times nothing, so it cannot compare; omit --against or --check.")
    project = find_project()
    due = None
    if solution is None:
        version.require_no_options({"--target": target, "--against": against, "--context": context})
        due = store.find_campaign(project, campaign)
        op, candidate = due.manifest.target_op, open_round.version_to_judge(due)
        version.tell_version(due, candidate)
    else:
        op, candidate = version.find_version(project, solution)
        if campaign or (target is None and against is None):
            due = version.find_campaign_of(project, op, candidate, campaign)
    if check:
        manifest = due.manifest if due else version.standalone_manifest(project, op, candidate, target, context)
        _check_only(project, manifest, candidate, as_json)
        return
    with console.progress(durations.duration_of(project, _job(due, op, candidate, against))) as tell:
        if due is not None:
            with store.hold_campaign(due, f"judge {project.relative(candidate.path)}"):
                version.require_due_version(due, candidate, open_round.version_to_judge(due))
                evaluation = lab_requests.judge_due_version(due, tell)
                opened = state.read_state(due).open
            tried = opened.attempt_count if evaluation in opened.attempts and opened.verdict is None else 0
            path = due.open / (f"attempt-{tried}.json" if tried else "verdict.json")
        else:
            best = version.find_version(project, against)[1] if against else None
            manifest = version.standalone_manifest(project, op, candidate, target, context)
            evaluation = lab_requests.judge_solution(project, manifest, candidate, tell, Conditions(best=best))
            path = lab_requests.write_verdict(project, evaluation)
            tried = 0
    note = attempts.describe_attempts(tried) if tried else ""
    finish_with(evaluation, project.relative(path), as_json, note=note, campaign=due)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("judge")(judge_command)


def finish_with(
    evaluation: Evaluation, path: str, as_json: bool, *, note: str = "", campaign: Campaign | None = None
) -> None:
    """Print an evaluation, a note and what is due in its campaign; exit with the code of the verdict."""
    from warpsmith.core.evaluation import Verdict
    from warpsmith.reporting import terminal

    if as_json:
        console.out_json(evaluation)
    else:
        console.stdout().print(terminal.verdict_table(evaluation, path))
    if note:
        console.tell(note)
    if campaign is not None and not as_json:
        rounds.tell_next(campaign)
    verdict = evaluation.decision.verdict
    if verdict.stands:
        return
    if verdict is Verdict.INVALID:
        raise typer.Exit(MachineFailed.exit_code)
    raise typer.Exit(Ambiguous.exit_code if evaluation.decision.ambiguous else SolutionFailed.exit_code)


def _job(campaign: Campaign | None, op: str, candidate: Solution, against: Path | None) -> str:
    """Return the name of a judgement, for its duration: a baseline is timed at more workloads and peers."""
    from warpsmith.campaign.rounds.state import read_state

    compared = read_state(campaign).best_name is not None if campaign else against is not None
    return f"judge {op}/{candidate.language}, {'against the best version' if compared else 'baseline'}"


def _check_only(project: Project, manifest: Manifest, candidate: Solution, as_json: bool) -> None:
    """Check that a version builds and is correct; exit code 1 if it is not."""
    from warpsmith.campaign import lab_requests
    from warpsmith.campaign.jobs.send import Conditions

    job = f"judge --check {manifest.target_op}/{candidate.language}"
    with console.progress(durations.duration_of(project, job)) as tell:
        evaluation = lab_requests.judge_solution(project, manifest, candidate, tell, Conditions(timed=False))
    if as_json:
        console.out_json(evaluation)
    elif evaluation.correct:
        workloads = ", ".join(result.workload for result in evaluation.results)
        console.out(f"PASS: {candidate.name} is correct at {workloads}; not timed, nothing kept")
    else:
        console.out(f"FAIL: {candidate.name}: {evaluation.decision.reason}")
    for note in () if as_json else evaluation.steps[0].notes:
        console.out(f"lint: {note}")
    if not evaluation.correct:
        failure = MachineFailed if evaluation.decision.verdict == "INVALID" else SolutionFailed
        raise typer.Exit(failure.exit_code)
