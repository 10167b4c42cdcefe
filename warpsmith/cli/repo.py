"""`warpsmith repo`: a kernel in somebody's own repository, optimised in place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.errors import Ambiguous, MachineFailed, MissingInput, Misuse, SolutionFailed

if TYPE_CHECKING:
    from warpsmith.campaign.rounds.steps import NextStep
    from warpsmith.core.repo import Baseline, RepoJudgement
    from warpsmith.repo.store import RepoCampaign

Named = Annotated[str | None, typer.Option("--campaign", help="Its name; by default the only one.")]
Json = Annotated[bool, typer.Option("--json", help="Print the model as it stands on disk.")]


def check(as_json: Json = False) -> None:
    """Try the contract at HEAD: tests, benchmark, and that both use the worktree's kernel; nothing is kept."""
    from warpsmith.repo import rounds, store

    with console.progress() as tell:
        judged, baseline = rounds.check(store.home(Path.cwd()), tell)
    if as_json:
        console.out_json(judged)
        return
    last = {run.what: run.seconds for run in judged.runs}
    took = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in last.items())
    console.out(f"The contract holds: {len(judged.rows)} figures; {took}.")
    console.out(_noise(baseline))


def start(name: Annotated[str, typer.Argument(help="The campaign's name.")]) -> None:
    """Start a campaign at HEAD: full validation, the noise floor, the representative rows; and a branch."""
    from warpsmith.repo import rounds, store

    with console.progress() as tell:
        campaign = rounds.start(store.home(Path.cwd()), name, tell)
    _render(campaign)
    console.out(campaign.name)
    console.tell(_noise(rounds.read(campaign).baseline))
    _go_on(campaign)


def plan(
    hypothesis: Annotated[str, typer.Option(help="What changes, and why it should be faster.")],
    predict: Annotated[float, typer.Option(help="Gain over the best version: 0.2 is 20 %.")],
    category: Annotated[str, typer.Option(help="The kind of change: memory, compute, ...")] = "compute",
    entry: Annotated[list[str] | None, typer.Option(help="A knowledge entry; may be repeated.")] = None,
    direction: Annotated[
        list[str] | None,
        typer.Option(help="At a review, as 'name|category|expected', the chosen one first; repeated."),
    ] = None,
    campaign: Named = None,
) -> None:
    """Open a round with one hypothesis."""
    from pydantic import ValidationError

    from warpsmith.cli.campaign.rounds import direction_of
    from warpsmith.core.campaign import Plan
    from warpsmith.core.problem import problem
    from warpsmith.knowledge.catalog import Catalog
    from warpsmith.repo import rounds

    found = _find(campaign)
    if entry:
        catalog = Catalog.load(found.project)
        for name in entry:
            catalog.get(name)
    try:
        made = Plan.model_validate(
            {
                "hypothesis": hypothesis,
                "category": category,
                "entries": entry or (),
                "predicted_gain": predict,
                "metric": "time_us",
                "expected_change": 0,
                "review": [direction_of(text) for text in direction or ()],
            }
        )
    except ValidationError as error:
        raise Misuse(f"The plan does not validate: {problem(error)}.") from error
    rounds.plan(found, made)
    _go_on(found)


def judge(
    quick: Annotated[bool, typer.Option("--quick", help="At the representative rows.")] = False,
    full: Annotated[bool, typer.Option("--full", help="At every row.")] = False,
    campaign: Named = None,
    as_json: Json = False,
) -> None:
    """Judge the kernel as it is in the worktree `edit`: tests, then base and candidate in turns.

    By default at the representative rows, and at all of them where the rules ask for it. Exit code 1: it is to be
    rolled back; 4: the machine or the commands failed, not the change; 6: it stayed in the noise.
    """
    from warpsmith.repo import rounds

    if quick and full:
        raise Misuse("Give --quick or --full, not both.")
    found = _find(campaign)
    with console.progress() as tell:
        judged = rounds.judge(found, "quick" if quick else "full" if full else None, tell)
    _show(judged, as_json)
    _go_on(found)
    _exit(judged)


def validate(campaign: Named = None, as_json: Json = False) -> None:
    """Judge the best commit at every row against the one that the campaign began at: due before the report."""
    from warpsmith.repo import rounds

    found = _find(campaign)
    with console.progress() as tell:
        judged = rounds.validate(found, tell)
    _render(found)
    _show(judged, as_json)
    _exit(judged)


def close(
    learn: Annotated[str | None, typer.Option(help="What the round teaches, in a sentence.")] = None,
    nothing: Annotated[str | None, typer.Option(help="Why it teaches nothing new.")] = None,
    campaign: Named = None,
) -> None:
    """Close the judged round: an accepted change becomes a commit, a rolled back one stays as a diff."""
    from pydantic import ValidationError

    from warpsmith.core.problem import problem
    from warpsmith.core.repo import RepoLesson
    from warpsmith.repo import rounds

    if (learn is None) == (nothing is None):
        raise Misuse('Give one of --learn "WHAT IT TEACHES" and --nothing "WHY".')
    found = _find(campaign)
    try:
        lesson = RepoLesson(learned=learn is not None, text=learn or nothing or "")
    except ValidationError as error:
        raise Misuse(f"The lesson does not validate: {problem(error)}.") from error
    record = rounds.close(found, lesson)
    _render(found)
    kept = f"commit {record.commit[:12]} on {found.manifest.branch}" if record.commit else "rolled back"
    console.out(f"Round {record.round}: {record.verdict}, {kept}.")
    _go_on(found)


def next_(campaign: Named = None, as_json: Json = False) -> None:
    """Say what is due, the command for it, and what must exist afterwards."""
    step = _step(_find(campaign))
    if as_json:
        console.out_json(step)
        return
    rows = [("needs", step.needs), ("command", step.command), ("produces", step.produces)]
    rows += [("note", note) for note in step.notes]
    console.out(f"{step.campaign}: round {step.round}, {step.phase} ({step.who})")
    console.out("\n".join(f"  {name:<9}{text}" for name, text in rows))


def status(campaign: Named = None, as_json: Json = False) -> None:
    """Show where a campaign stands, round by round."""
    from warpsmith.repo import rounds
    from warpsmith.repo.worktrees import EDIT
    from warpsmith.reporting import repo

    found = _find(campaign)
    if as_json:
        console.out_json(repo.contents(found))
        return
    now = rounds.read(found)
    console.out(f"{found.name}: {', '.join(found.manifest.contract.kernel)}; best {now.best[:12]}")
    console.out(f"  worktree: {found.project.relative(found.state / EDIT)}; due: {_step(found).phase}")
    for record in (kept.record for kept in now.kept):
        mean = record.judgement.aggregate if record.round > 1 else None
        gain = f" {mean.speedup - 1:+.1%}" if mean else ""
        console.out(f"  round {record.round}: {record.verdict}{gain} ({record.judgement.level})")


def report(campaign: Named = None, as_json: Json = False) -> None:
    """Render the campaign's page and say where it is; the best commit must have been validated in full."""
    from warpsmith.repo import rounds
    from warpsmith.reporting import repo

    found = _find(campaign)
    path = repo.render(found)
    if as_json:
        console.out_json(repo.contents(found))
    if not rounds.read(found).validated:
        raise MissingInput(
            f"The best commit of {found.name} was not validated in full against its start; run `warpsmith repo"
            f" validate --campaign {found.name}`, then report again."
        )
    if not as_json:
        console.out(path.read_text())
    console.tell(found.project.relative(path))


def workspace(
    name: Annotated[str, typer.Argument(help="The campaign that it belongs to.")],
    kernel: Annotated[str, typer.Option(help="The kernel's file, one of the contract's.")],
) -> None:
    """Take the kernel out with what it imports, its test and its benchmark, to work on it apart."""
    from warpsmith.repo import workspace as workspaces

    found = _find(name)
    made = workspaces.extract(found, Path(kernel).as_posix())
    console.out(found.project.relative(found.folder / made.copy_path))
    console.tell(f"{len(made.files)} files from {made.upstream[:12]}; in that folder:")
    for command in (made.test, made.benchmark):
        console.tell(f"  {command}")
    if made.problem:
        console.tell(f"The test does not pass there: {made.problem}")
    console.tell(f"Then `warpsmith repo sync {name}` brings the kernel back, and only it.")


def sync(name: Annotated[str, typer.Argument(help="The campaign.")]) -> None:
    """Bring the workspace's kernel back into the campaign's worktree, to be judged there."""
    from warpsmith.repo import workspace as workspaces

    found = _find(name)
    console.out(found.project.relative(workspaces.sync(found)))
    _go_on(found)


def register(app: typer.Typer) -> None:
    """Add the group to the command."""
    group = typer.Typer(
        name="repo",
        help="A kernel in place, by its own repository's tests and benchmark.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command("next")(next_)
    for command in (check, start, plan, judge, close, validate, status, report, workspace, sync):
        group.command()(command)
    app.add_typer(group)


def _find(name: str | None) -> RepoCampaign:
    from warpsmith.repo import store

    return store.find(store.home(Path.cwd()), name)


def _noise(baseline: Baseline) -> str:
    return (
        f"Against itself up to {baseline.floor:.1%} faster by chance, {baseline.quick_floor:.1%} at"
        f" {', '.join(baseline.representative)}: no smaller gain counts."
    )


def _step(campaign: RepoCampaign) -> NextStep:
    from warpsmith.repo import rounds, steps

    return steps.next_step(rounds.read(campaign))


def _go_on(campaign: RepoCampaign) -> None:
    step = _step(campaign)
    console.tell(f"Next: {step.needs}; then {step.command}")


def _render(campaign: RepoCampaign) -> None:
    from warpsmith.reporting import repo

    repo.render(campaign)


def _show(judged: RepoJudgement, as_json: bool) -> None:
    from warpsmith.reporting import format

    if as_json:
        console.out_json(judged)
        return
    console.out(f"{judged.decision.verdict} ({judged.level}): {judged.decision.reason}")
    for row in judged.rows:
        ratio = f"{format.factor(row.speedup)} {format.interval(row.interval)}"
        console.out(f"  {row.row} {row.metric}: {row.before:.6g} -> {row.after:.6g}, {ratio}")
    for finding in judged.findings:
        console.out(f"  look: {finding}")


def _exit(judged: RepoJudgement) -> None:
    """The exit code says what became of the change; the table has said why."""
    decision = judged.decision
    if decision.verdict == "INVALID":
        raise typer.Exit(MachineFailed.exit_code)
    if not decision.verdict.accepted:
        raise typer.Exit(Ambiguous.exit_code if decision.ambiguous else SolutionFailed.exit_code)
