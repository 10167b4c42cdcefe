"""`warpsmith judge`: check, time and decide one version."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.cli.campaign import version
from warpsmith.cli.campaign.version import File
from warpsmith.cli.options import Json, Target
from warpsmith.errors import Ambiguous, MachineFailed, Misuse, SolutionFailed

if TYPE_CHECKING:
    from warpsmith.campaign.history.solutions import Solution
    from warpsmith.core.campaign import Manifest
    from warpsmith.core.evaluation import Evaluation
    from warpsmith.project import Project


def judge_command(
    solution: File,
    campaign: Annotated[
        str | None, typer.Option(help="Name of the campaign; by default the one where this version is due.")
    ] = None,
    target: Target = None,
    against: Annotated[Path | None, typer.Option(help="Another version, which this one must beat.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Run correctness and probes only; record nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Judge a version: correctness, timing, decision. In a campaign the verdict is its VERIFY step.

    Exit code 1: the version is to be rolled back; 4: the machine failed; 6: the gain is within the noise.
    """
    from warpsmith.campaign import lab_requests
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import open_round
    from warpsmith.project import find_project

    version.refuse_with_campaign(campaign, {"--target": target, "--against": against})
    if check and against:
        raise Misuse("--check times nothing, so it cannot compare; omit --against or --check.")
    project = find_project()
    op, candidate = lab_requests.locate_version(project, solution)
    due = None
    if campaign or (target is None and against is None):
        due = version.find_campaign_of(project, op, candidate, campaign)
    if check:
        manifest = due.manifest if due else version.standalone_manifest(project, op, candidate, target)
        _check_only(project, manifest, candidate, as_json)
        return
    with console.progress() as tell:
        if due is not None:
            with store.hold_campaign(due, f"judge {solution}"):
                version.require_due_version(due, candidate, open_round.version_to_judge(due))
                evaluation, path = lab_requests.judge_due_version(due, tell), due.open / "verdict.json"
        else:
            best = lab_requests.locate_version(project, against)[1] if against else None
            manifest = version.standalone_manifest(project, op, candidate, target)
            evaluation = lab_requests.judge_version(
                lab_requests.lab_request(project, manifest, candidate, tell, best=best)
            )
            path = lab_requests.write_verdict(project, evaluation)
    finish_with(evaluation, project.relative(path), as_json)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("judge")(judge_command)


def finish_with(evaluation: Evaluation, path: str, as_json: bool) -> None:
    """Print an evaluation and exit with the code of its verdict."""
    from warpsmith.core.evaluation import Verdict
    from warpsmith.reporting import terminal

    if as_json:
        console.out_json(evaluation)
    else:
        console.stdout().print(terminal.verdict_table(evaluation, path))
    verdict = evaluation.decision.verdict
    if verdict.accepted:
        return
    if verdict is Verdict.INVALID:
        raise typer.Exit(MachineFailed.exit_code)
    raise typer.Exit(Ambiguous.exit_code if evaluation.decision.ambiguous else SolutionFailed.exit_code)


def _check_only(project: Project, manifest: Manifest, candidate: Solution, as_json: bool) -> None:
    """Check that a version builds and is correct; exit code 1 if it is not."""
    from warpsmith.campaign import lab_requests

    with console.progress() as tell:
        evaluation = lab_requests.judge_version(
            lab_requests.lab_request(project, manifest, candidate, tell, timed=False)
        )
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
