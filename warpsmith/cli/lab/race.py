"""`warpsmith race`: time a version against the reference, torch.compile and the peers on every workload."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console, durations
from warpsmith.cli.options import Json, Target
from warpsmith.errors import MissingInput, Misuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.core.race import RaceRecord
    from warpsmith.project import Project
    from warpsmith.use.choice import BestVersion

ALL = "all"
"""Name that stands for every peer."""


def race_command(
    subject: Annotated[
        str | None,
        typer.Argument(metavar="OP|VERSION", help="Operator, for its best version, or a version's file."),
    ] = None,
    final: Annotated[
        bool, typer.Option("--final", help="Race the campaign's best version and record it as the campaign's end.")
    ] = False,
    campaign: Annotated[
        str | None, typer.Option(help="With --final: name of the campaign; by default the only unfinished one.")
    ] = None,
    peers: Annotated[
        list[str] | None,
        typer.Option("--peer", "--peers", help="Peer to race, repeatable; with OP also `all`, the default."),
    ] = None,
    workload: Annotated[
        list[str] | None, typer.Option(help="With OP: workload, repeatable; by default every timed one.")
    ] = None,
    target: Target = None,
    as_json: Json = False,
) -> None:
    """Race a version against the reference, torch.compile and the peers, each result checked.

    With OP the race gives no verdict and changes no campaign, and each workload is written as it ends. Exit code
    1: the version is wrong; 4: the machine lacks something. A version's file and --final are judged in full, with
    the exit codes of `warpsmith judge`.
    """
    if final == (subject is not None):
        raise Misuse("Give either an operator or a version, or --final.")
    if campaign and not final:
        raise Misuse("A campaign races its own best version; give --final, or omit --campaign.")
    is_version = subject is not None and ("/" in subject or Path(subject).suffix != "")
    if workload and (final or is_version):
        raise Misuse("--workload is for the race of an operator; a version is raced on every workload.")
    if subject is None:
        if target or peers:
            raise Misuse("A campaign's manifest sets the target and the peers; name a version to choose others.")
        _race_campaign(campaign, as_json)
    elif is_version:
        _race_version(Path(subject), peers, target, as_json)
    else:
        _race_operator(subject, peers, workload, target, as_json)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("race")(race_command)


def _race_campaign(name: str | None, as_json: bool) -> None:
    """Judge a campaign's best version against all its peers, and record that as the final race."""
    from warpsmith.campaign import lab_requests
    from warpsmith.campaign.history import final_race, store
    from warpsmith.cli.lab.judge import finish_with
    from warpsmith.project import find_project

    project = find_project()
    campaign = store.find_campaign(project, name)
    duration = durations.duration_of(project, f"race --final {campaign.manifest.target_op}")
    with console.progress(duration) as tell, store.hold_campaign(campaign, "warpsmith race --final"):
        evaluation, path = lab_requests.run_final_race(campaign, tell), final_race.final_race_path(campaign)
    finish_with(evaluation, project.relative(path), as_json, campaign=campaign)


def _race_version(file: Path, peers: Sequence[str] | None, target: str | None, as_json: bool) -> None:
    """Judge a version against the reference and the peers on every workload, outside of a campaign."""
    from warpsmith.campaign import lab_requests
    from warpsmith.campaign.jobs.send import Conditions
    from warpsmith.cli.campaign import version
    from warpsmith.cli.lab.judge import finish_with
    from warpsmith.project import find_project

    project = find_project()
    op, solution = version.find_version(project, file)
    manifest = version.standalone_manifest(project, op, solution, target)
    chosen = tuple(peers) if peers else manifest.peers
    with console.progress(durations.duration_of(project, f"race {op}/{solution.name}")) as tell:
        conditions = Conditions(sets=lab_requests.EVERYTHING, peers=chosen)
        evaluation = lab_requests.judge_solution(project, manifest, solution, tell, conditions)
        path = lab_requests.write_verdict(project, evaluation)
    finish_with(evaluation, project.relative(path), as_json)


def _race_operator(
    op: str, peers: Sequence[str] | None, workloads: Sequence[str] | None, target: str | None, as_json: bool
) -> None:
    """Race the best version of an operator, and write the page of the race."""
    from warpsmith.campaign import lab_requests
    from warpsmith.campaign.history import solutions
    from warpsmith.cli.campaign import version
    from warpsmith.core.text import NoticeLine
    from warpsmith.lab.machine import hardware
    from warpsmith.lab.race import peer_race
    from warpsmith.project import find_project
    from warpsmith.reporting import race as pages
    from warpsmith.use import choice

    owner, project = choice.find_owning_project(op), find_project()
    racing = replace(project, kernels=owner.kernels)  # results go to the current project
    device = target or hardware.require_local_target(project).id
    best = _best_version(owner, op, device)
    solution = solutions.find_solution(owner, op, best.solution)
    manifest = version.standalone_manifest(racing, op, solution, device)
    chosen = () if ALL in (peers or [ALL]) else tuple(peers or ())
    job = f"race {op}, {' '.join((*chosen, *(workloads or ()))) or 'everything'}"
    folder: Path | None = None
    with (
        console.progress(durations.duration_of(project, job)) as tell,
        lab_requests.lease_target(project, device, tell),
    ):
        request = lab_requests.lab_request(
            racing, manifest, solution, tell, sets=lab_requests.EVERYTHING, peers=chosen
        )

        def keep(record: RaceRecord) -> None:
            nonlocal folder
            folder = pages.write_race(project, record, folder)
            raced, left = len(record.results), len(record.unraced)
            tell(NoticeLine(f"{raced} of {raced + left} workloads: {project.relative(folder)}"))

        record = peer_race.run_race(request, workloads or (), keep=keep)
        folder = pages.write_race(project, record, folder)
    if as_json:
        console.out_json(record)
    else:
        console.stdout().print(pages.race_table(record, project.relative(folder)))


def _best_version(owner: Project, op: str, target: str) -> BestVersion:
    from warpsmith import files
    from warpsmith.campaign.history import solutions
    from warpsmith.use import choice

    best = choice.best_versions_by_target(owner, op).get(target)
    if best is None:
        raise MissingInput(
            f"No version of {op} was accepted on `{target}` yet; `warpsmith start {op}` starts a campaign."
        )
    path = solutions.find_solution(owner, op, best.solution).path
    if not path.is_file() or files.file_sha256(path) != best.sha256:
        raise Misuse(f"{path} is not the file that was accepted; restore {best.file}.")
    return best
