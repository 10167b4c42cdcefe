"""`warpsmith race`: the best version beside the reference, torch.compile and every peer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console

if TYPE_CHECKING:
    from warpsmith.project import Project
    from warpsmith.use.choice import Chosen

ALL = "all"
"""Stands for every peer."""


def race(
    op: Annotated[str, typer.Argument(help="The operator.")],
    peers: Annotated[
        list[str] | None,
        typer.Option("--peer", "--peers", help="A side to race beside the reference, may be repeated; or `all`."),
    ] = None,
    workload: Annotated[
        list[str] | None, typer.Option(help="A workload, may be repeated; by default every timed one.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="The device kind; by default the machine at hand's.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record as it stands on disk.")] = False,
) -> None:
    """Race the best version against the reference, torch.compile and the peers, each result checked.

    It gives no verdict and changes no campaign. Exit code 1: the version is wrong; 4: the machine lacks something.
    """
    from warpsmith import project
    from warpsmith.campaign import work
    from warpsmith.campaign.history import solutions
    from warpsmith.cli.campaign import version
    from warpsmith.lab.machine import hardware
    from warpsmith.lab.peer_race import contest
    from warpsmith.reporting import race as pages
    from warpsmith.use import choice

    owner, here = choice.owner(op), project.find()
    mixed = replace(here, kernels=owner.kernels)  # what is measured is kept in the project at hand
    kind = target or hardware.at_hand(here).id
    chosen = _best(owner, op, kind)
    solution = solutions.at(owner, op, chosen.solution)
    manifest = version.alone(mixed, op, solution, kind)
    wanted = () if ALL in (peers or [ALL]) else tuple(peers or ())
    with console.progress() as tell:
        asked = work.request(mixed, manifest, solution, tell, sets=work.EVERYTHING, peers=wanted)
        record = contest.hold(asked, workload or ())
        folder = pages.write(here, record)
    if as_json:
        console.out_json(record)
    else:
        console.stdout().print(pages.table(record, here.relative(folder)))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(race)


def _best(owner: Project, op: str, kind: str) -> Chosen:
    from warpsmith import files
    from warpsmith.campaign.history import solutions
    from warpsmith.errors import MissingInput, Misuse
    from warpsmith.use import choice

    chosen = choice.every(owner, op).get(kind)
    if chosen is None:
        raise MissingInput(
            f"No version of {op} was accepted on `{kind}` yet; `warpsmith start {op}` begins a campaign."
        )
    path = solutions.at(owner, op, chosen.solution).path
    if not path.is_file() or files.sha256(path) != chosen.sha256:
        raise Misuse(f"{path} is not the file that was accepted; put {chosen.file} back in its place.")
    return chosen
