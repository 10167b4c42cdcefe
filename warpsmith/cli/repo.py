"""`warpsmith repo`: optimize a kernel in place, inside its own repository."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.cli.options import Json
from warpsmith.errors import Ambiguous, MachineFailed, MissingInput, Misuse, SolutionFailed

if TYPE_CHECKING:
    from warpsmith.campaign.rounds.due_phase import DuePhase
    from warpsmith.core.repo import RepoBaseline, RepoEvaluation
    from warpsmith.repo.store import RepoCampaign

RepoCampaignName = Annotated[
    str | None, typer.Option("--campaign", help="Name of the campaign; by default the only one.")
]


def repo_init_command(
    kernel: Annotated[
        str | None, typer.Option(help="File of the kernel; by default one that is recognised.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the draft and write nothing.")] = False,
) -> None:
    """Draft the contract from the repository: kernel, build, test and benchmark, each with its source and doubts.

    It goes to the end of pyproject.toml or warpsmith.toml; `warpsmith restore` takes it back.
    """
    from warpsmith.repo import store
    from warpsmith.repo.draft import settings_draft

    project = store.find_repo_project(Path.cwd())
    path = kernel and project.relative(Path.cwd() / kernel)
    draft = settings_draft.draft_settings(project, path)
    if not dry_run:
        settings_draft.write_draft(project, draft)
    console.out(draft.table)
    if dry_run:
        console.tell("Nothing was written.")
        return
    names = " ".join(console.path_from_here(file) for file in draft.paths)
    console.tell(f"Written to {names}; `warpsmith restore {names}` takes it back.")
    console.tell(
        f"Next: settle the {draft.doubts} lines that are UNCERTAIN, commit, then run `warpsmith repo check`."
    )


def repo_check_command(as_json: Json = False) -> None:
    """Check the contract at HEAD: tests, benchmark, and that both use the worktree's kernel; records nothing."""
    from warpsmith.repo import rounds, store

    with console.progress() as tell:
        judgement, baseline = rounds.check_settings(store.find_repo_project(Path.cwd()), tell)
    if as_json:
        console.out_json(judgement)
        return
    last = {run.what: run.seconds for run in judgement.runs}
    took = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in last.items())
    console.out(f"The contract holds: {len(judgement.rows)} figures; {took}.")
    console.out(_noise_text(baseline))


def repo_start_command(name: Annotated[str, typer.Argument(help="Name of the campaign.")]) -> None:
    """Start a campaign at HEAD: validate in full, measure the noise floor, choose rows, and create a branch."""
    from warpsmith.repo import rounds, store

    with console.progress() as tell:
        campaign = rounds.start_repo_campaign(store.find_repo_project(Path.cwd()), name, tell)
    _render_page(campaign)
    console.out(campaign.name)
    console.tell(_noise_text(rounds.read_repo_state(campaign).baseline))
    _tell_next(campaign)


def repo_plan_command(
    hypothesis: Annotated[str, typer.Option(help="The change, and why it should be faster.")],
    predict: Annotated[float, typer.Option(help="Predicted gain over the best version: 0.2 is 20 %.")],
    category: Annotated[str, typer.Option(help="Kind of change: algorithm, memory, compute, ...")] = "compute",
    entry: Annotated[list[str] | None, typer.Option(help="Knowledge entry that it applies; repeatable.")] = None,
    direction: Annotated[
        list[str] | None,
        typer.Option(help="Direction at a review, as 'name|category|expected', the chosen one first; repeatable."),
    ] = None,
    name: RepoCampaignName = None,
) -> None:
    """Open a round with one hypothesis."""
    from pydantic import ValidationError

    from warpsmith.cli.campaign.rounds import parse_direction, require_category
    from warpsmith.core.campaign import Plan
    from warpsmith.core.text import describe_error
    from warpsmith.knowledge.catalog import Catalog
    from warpsmith.repo import rounds

    campaign = _find_repo_campaign(name)
    if entry:
        Catalog.load(campaign.project).require(entry)
    try:
        proposal = Plan.model_validate(
            {
                "hypothesis": hypothesis,
                "category": require_category(category),
                "entries": entry or (),
                "predicted_gain": predict,
                "metric": "time_us",
                "expected_change": 0,
                "review": [parse_direction(text) for text in direction or ()],
            }
        )
    except ValidationError as error:
        raise Misuse(f"The plan does not validate: {describe_error(error)}.") from error
    rounds.plan_round(campaign, proposal)
    _tell_next(campaign)


def repo_judge_command(
    quick: Annotated[bool, typer.Option("--quick", help="Judge on the representative rows.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Judge on all rows.")] = False,
    name: RepoCampaignName = None,
    as_json: Json = False,
) -> None:
    """Judge the kernel in the worktree `edit`: run the tests, then time base and candidate in turns.

    By default on the representative rows, and on all rows if the rules require it. Exit code 1: the change is to
    be rolled back; 4: the machine or a command failed; 6: the gain is within the noise.
    """
    from warpsmith.repo import rounds

    if quick and full:
        raise Misuse("Give --quick or --full, not both.")
    campaign = _find_repo_campaign(name)
    with console.progress() as tell:
        judgement = rounds.judge_round(campaign, "quick" if quick else "full" if full else None, tell)
    _print_judgement(judgement, as_json)
    _tell_next(campaign)
    _exit_for(judgement)


def repo_validate_command(name: RepoCampaignName = None, as_json: Json = False) -> None:
    """Judge the best commit on all rows against the commit that the campaign started at; due before the report."""
    from warpsmith.repo import rounds

    campaign = _find_repo_campaign(name)
    with console.progress() as tell:
        judgement = rounds.validate_best(campaign, tell)
    _render_page(campaign)
    _print_judgement(judgement, as_json)
    _exit_for(judgement)


def repo_close_command(
    learn: Annotated[str | None, typer.Option(help="Lesson of the round, in a sentence.")] = None,
    nothing: Annotated[str | None, typer.Option(help="Reason why nothing is new.")] = None,
    name: RepoCampaignName = None,
) -> None:
    """Close the judged round: an accepted change becomes a commit, a rolled back one is stored as a diff."""
    from pydantic import ValidationError

    from warpsmith.core.repo import RepoLesson
    from warpsmith.core.text import describe_error
    from warpsmith.repo import rounds

    if (learn is None) == (nothing is None):
        raise Misuse('Give one of --learn "LESSON" and --nothing "REASON".')
    campaign = _find_repo_campaign(name)
    try:
        lesson = RepoLesson(learned=learn is not None, text=learn or nothing or "")
    except ValidationError as error:
        raise Misuse(f"The lesson does not validate: {describe_error(error)}.") from error
    record = rounds.close_repo_round(campaign, lesson)
    _render_page(campaign)
    result = f"commit {record.commit[:12]} on {campaign.manifest.branch}" if record.commit else "rolled back"
    console.out(f"Round {record.round}: {record.verdict}, {result}.")
    _tell_next(campaign)


def repo_next_command(name: RepoCampaignName = None, as_json: Json = False) -> None:
    """Show the step that is due, its command, and the file that it must produce."""
    step = _next_step(_find_repo_campaign(name))
    if as_json:
        console.out_json(step)
        return
    rows = [("needs", step.needs), ("command", step.command), ("produces", step.produces)]
    rows += [("note", note) for note in step.notes]
    console.out(f"{step.campaign}: round {step.round}, {step.phase} ({step.who})")
    console.out("\n".join(f"  {name:<9}{text}" for name, text in rows))


def repo_status_command(name: RepoCampaignName = None, as_json: Json = False) -> None:
    """Show the state of a campaign, round by round."""
    from warpsmith.repo import rounds
    from warpsmith.repo.worktrees import EDIT

    campaign = _find_repo_campaign(name)
    if as_json:
        from warpsmith.reporting import repo

        console.out_json(repo.repo_contents(campaign))
        return
    state = rounds.read_repo_state(campaign)
    console.out(f"{campaign.name}: {', '.join(campaign.manifest.contract.kernel)}; best {state.best[:12]}")
    console.out(
        f"  worktree: {campaign.project.relative(campaign.state / EDIT)}; due: {_next_step(campaign).phase}"
    )
    for record in (stored.record for stored in state.rounds):
        mean = record.judgement.aggregate if record.round > 1 else None
        gain = f" {mean.speedup - 1:+.1%}" if mean else ""
        console.out(f"  round {record.round}: {record.verdict}{gain} ({record.judgement.level})")


def repo_report_command(name: RepoCampaignName = None, as_json: Json = False) -> None:
    """Render and print the campaign's page; the best commit must have been validated in full."""
    from warpsmith.repo import rounds
    from warpsmith.reporting import repo

    campaign = _find_repo_campaign(name)
    path = repo.write_repo_page(campaign)
    if as_json:
        console.out_json(repo.repo_contents(campaign))
    if not rounds.read_repo_state(campaign).validated:
        raise MissingInput(
            f"The best commit of {campaign.name} was not validated in full against its start; run `warpsmith repo"
            f" validate --campaign {campaign.name}`, then report again."
        )
    if not as_json:
        console.out(path.read_text())
    console.tell(campaign.project.relative(path))


def repo_workspace_command(
    name: Annotated[str, typer.Argument(help="Name of the campaign.")],
    kernel: Annotated[str, typer.Option(help="File of the kernel, one of the contract's.")],
) -> None:
    """Copy the kernel with what it imports or is built from, its test and its benchmark to a separate folder."""
    from warpsmith.repo import workspace as workspaces

    campaign = _find_repo_campaign(name)
    workspace = workspaces.extract_workspace(campaign, Path(kernel).as_posix())
    console.out(campaign.project.relative(campaign.folder / workspace.copy_path))
    console.tell(f"{len(workspace.files)} files from {workspace.upstream[:12]}; in that folder:")
    for command in filter(None, (workspace.rebuild, workspace.test, workspace.benchmark)):
        console.tell(f"  {command}")
    if workspace.problem:
        console.tell(f"The workspace does not pass its test: {workspace.problem}")
    console.tell(f"Then `warpsmith repo sync {name}` copies the kernel back, and nothing else.")


def repo_sync_command(name: Annotated[str, typer.Argument(help="Name of the campaign.")]) -> None:
    """Copy the workspace's kernel back to the campaign's worktree, to be judged there."""
    from warpsmith.repo import workspace as workspaces

    campaign = _find_repo_campaign(name)
    console.out(campaign.project.relative(workspaces.sync_workspace(campaign)))
    _tell_next(campaign)


def repo_resume_command(name: RepoCampaignName = None) -> None:
    """Move corrupt records to the quarantine and remove unfinished writes, then show the next step."""
    from warpsmith.repo import rounds

    campaign = _find_repo_campaign(name)
    repairs = rounds.resume_repo_campaign(campaign)
    console.out("\n".join(repairs) if repairs else "Nothing to repair.")
    _tell_next(campaign)


def register(app: typer.Typer) -> None:
    """Add the group to the command."""
    group = typer.Typer(
        help="Optimize a kernel in place, judged by its repository's own tests and benchmark.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command("init")(repo_init_command)
    group.command("check")(repo_check_command)
    group.command("start")(repo_start_command)
    group.command("next")(repo_next_command)
    group.command("plan")(repo_plan_command)
    group.command("judge")(repo_judge_command)
    group.command("close")(repo_close_command)
    group.command("validate")(repo_validate_command)
    group.command("resume")(repo_resume_command)
    group.command("status")(repo_status_command)
    group.command("report")(repo_report_command)
    group.command("workspace")(repo_workspace_command)
    group.command("sync")(repo_sync_command)
    app.add_typer(group, name="repo")


def _find_repo_campaign(name: str | None) -> RepoCampaign:
    from warpsmith.repo import store

    return store.find_repo_campaign(store.find_repo_project(Path.cwd()), name)


def _noise_text(baseline: RepoBaseline) -> str:
    return (
        f"Against itself up to {baseline.floor:.1%} faster by chance, {baseline.quick_floor:.1%} on"
        f" {', '.join(baseline.representative)}; a smaller gain does not count."
    )


def _next_step(campaign: RepoCampaign) -> DuePhase:
    from warpsmith.repo import due_phase, rounds

    return due_phase.find_due_repo_phase(rounds.read_repo_state(campaign))


def _tell_next(campaign: RepoCampaign) -> None:
    step = _next_step(campaign)
    console.tell(f"Next: {step.needs}; then {step.command}")


def _render_page(campaign: RepoCampaign) -> None:
    from warpsmith.reporting import repo

    repo.write_repo_page(campaign)


def _print_judgement(judgement: RepoEvaluation, as_json: bool) -> None:
    from warpsmith.repo.transfer.description import transfer_lines
    from warpsmith.reporting import format

    if as_json:
        console.out_json(judgement)
        return
    console.out(f"{judgement.decision.verdict} ({judgement.level}): {judgement.decision.reason}")
    for row in judgement.rows:
        ratio = f"{format.factor(row.speedup)} {format.interval(row.interval)}"
        console.out(f"  {row.row} {row.metric}: {row.before:.6g} -> {row.after:.6g}, {ratio}")
    for finding in judgement.findings:
        console.out(f"  look: {finding}")
    console.out("Transfer")
    for line in transfer_lines(judgement):
        console.out(f"  {line}")


def _exit_for(judgement: RepoEvaluation) -> None:
    """Exit with the code of the verdict."""
    decision = judgement.decision
    if decision.verdict == "INVALID":
        raise typer.Exit(MachineFailed.exit_code)
    if not decision.verdict.accepted:
        raise typer.Exit(Ambiguous.exit_code if decision.ambiguous else SolutionFailed.exit_code)
