"""`warpsmith judge` and `bench`: what the lab does to one version."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.cli.campaign import version
from warpsmith.cli.campaign.version import File
from warpsmith.errors import Ambiguous, MachineFailed, Misuse, SolutionFailed

if TYPE_CHECKING:
    from warpsmith.campaign.history.solutions import Solution
    from warpsmith.core.campaign import Manifest
    from warpsmith.core.evaluation import Evaluation
    from warpsmith.project import Project

Name = Annotated[str | None, typer.Option(help="The campaign; by default the one this version is due in.")]
Target = Annotated[str | None, typer.Option(help="The device kind; by default the machine at hand's.")]
Json = Annotated[bool, typer.Option("--json", help="Print the model as it stands on disk.")]


def judge(
    solution: File,
    campaign: Name = None,
    target: Target = None,
    against: Annotated[Path | None, typer.Option(help="Another version to be better than.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Correctness and probes only; nothing is kept.")] = False,
    as_json: Json = False,
) -> None:
    """Judge a version: correctness, timing, decision. In a campaign the verdict is its VERIFY step.

    Exit code 1: it is to be rolled back; 4: the machine failed, not the version; 6: it stayed in the noise.
    """
    from warpsmith import project
    from warpsmith.campaign import work
    from warpsmith.campaign.history import lock
    from warpsmith.campaign.rounds import rounds

    version.alone_only(campaign, {"--target": target, "--against": against})
    if check and against:
        raise Misuse("--check times nothing, so nothing can be better; leave out --against, or --check.")
    here = project.find()
    op, found = work.located(here, solution)
    due = version.waiting(here, op, found, campaign) if campaign or (target is None and against is None) else None
    if check:
        _check(here, due.manifest if due else version.alone(here, op, found, target), found, as_json)
        return
    with console.progress() as tell:
        if due is not None:
            with lock.hold(due, f"judge {solution}"):
                version.require(due, found, rounds.to_judge(due))
                evaluation, path = work.verify(due, tell), due.open / "verdict.json"
        else:
            best = work.located(here, against)[1] if against else None
            manifest = version.alone(here, op, found, target)
            evaluation = work.judge(work.request(here, manifest, found, tell, best=best))
            path = work.keep(here, evaluation)
    _show(evaluation, here.relative(path), as_json)
    _exit(evaluation)


def bench(
    solution: Annotated[Path | None, typer.Argument(help="A version; by default the campaign's best.")] = None,
    campaign: Annotated[str | None, typer.Option(help="Whose best version is raced and kept.")] = None,
    target: Target = None,
    peer: Annotated[
        list[str] | None, typer.Option(help="Of a version: a side to race beside the reference, may be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Race a version against the reference and the peers on every workload; correctness comes first."""
    from warpsmith import project
    from warpsmith.campaign import work
    from warpsmith.campaign.history import finale, lock, store

    if solution is None:
        if target or peer:
            raise Misuse(
                "A campaign's race has its own target and peers; name a version to race that with others."
            )
    elif campaign:
        raise Misuse("A campaign races its own best version; leave out the version, or --campaign.")
    here = project.find()
    with console.progress() as tell:
        if solution is None:
            best_of = store.find(here, campaign)
            with lock.hold(best_of, "bench"):
                evaluation, path = work.race(best_of, tell), finale.path(best_of)
        else:
            op, found = work.located(here, solution)
            manifest = version.alone(here, op, found, target)
            peers = tuple(peer) if peer else manifest.peers
            evaluation = work.judge(
                work.request(here, manifest, found, tell, sets=work.EVERYTHING, peers=peers)
            )  # fmt: skip
            path = work.keep(here, evaluation)
    _show(evaluation, here.relative(path), as_json)
    _exit(evaluation)


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    for command in (judge, bench):
        app.command()(command)


def _check(here: Project, manifest: Manifest, found: Solution, as_json: bool) -> None:
    """Whether a version builds and is right; exit code 1 where it is not."""
    from warpsmith.campaign import work
    from warpsmith.errors import SolutionFailed

    with console.progress() as tell:
        evaluation = work.judge(work.request(here, manifest, found, tell, timed=False))
    if as_json:
        console.out_json(evaluation)
    elif evaluation.correct:
        checked = ", ".join(result.workload for result in evaluation.results)
        console.out(f"PASS: {found.name} is correct at {checked}; not timed, nothing kept")
    else:
        console.out(f"FAIL: {found.name}: {evaluation.decision.reason}")
    for note in () if as_json else evaluation.steps[0].notes:
        console.out(f"lint: {note}")
    if not evaluation.correct:
        failed = MachineFailed if evaluation.decision.verdict == "INVALID" else SolutionFailed
        raise typer.Exit(failed.exit_code)


def _show(evaluation: Evaluation, path: str, as_json: bool) -> None:
    from warpsmith.reporting import terminal

    if as_json:
        console.out_json(evaluation)
    else:
        console.stdout().print(terminal.verdict_table(evaluation, path))


def _exit(evaluation: Evaluation) -> None:
    """The exit code says what became of the version; the table has said why."""
    from warpsmith.core.evaluation import Verdict

    verdict = evaluation.decision.verdict
    if verdict.accepted:
        return
    if verdict is Verdict.INVALID:
        raise typer.Exit(MachineFailed.exit_code)
    raise typer.Exit(Ambiguous.exit_code if evaluation.decision.ambiguous else SolutionFailed.exit_code)
