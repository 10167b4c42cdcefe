"""The version that a command is about: in the campaign that waits for it, or on its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.errors import Misuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warpsmith.campaign.history.solutions import Solution
    from warpsmith.campaign.history.store import Campaign
    from warpsmith.core.campaign import Manifest
    from warpsmith.project import Project

File = Annotated[Path, typer.Argument(help="A version: kernels/<op>/<language>/v<N>.<ending>.")]


def waiting(here: Project, op: str, found: Solution, name: str | None) -> Campaign | None:
    """The campaign that is named, else the one campaign that waits for this version.

    Raises:
        Misuse: the campaign that is named is one of another operator.
    """
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import state

    if name:
        named = store.find(here, name)
        if named.manifest.target_op != op:
            raise Misuse(f"{name} is a campaign of {named.manifest.target_op}; {found.name} is a version of {op}.")
        return named
    found_in = []
    for campaign in store.all(here):
        now = state.read(campaign) if campaign.manifest.target_op == op else None
        if now and (found.name == now.best_name or (now.solution and found.name == now.solution.name)):
            found_in.append(campaign)
    if len(found_in) > 1:
        names = ", ".join(campaign.name for campaign in found_in)
        console.tell(f"{found.name} is of several campaigns ({names}) and counts in none; --campaign names one.")
    return found_in[0] if len(found_in) == 1 else None


def require(campaign: Campaign, meant: Solution, due: Solution) -> None:
    """Raises Misuse where the version that a step is due for is not the one that the command names."""
    if meant.path != due.path:
        raise Misuse(
            f"{campaign.name} has this due for {due.name}, not for {meant.name};"
            f" with `--target {campaign.manifest.target}` and no campaign it is done outside of one."
        )


def alone_only(campaign: str | None, given: Mapping[str, object]) -> None:
    """Raises Misuse where a campaign is named beside what it has settled."""
    named = [option for option, value in given.items() if value]
    if campaign and named:
        raise Misuse(f"A campaign has settled that at its start; leave out {' and '.join(named)}, or --campaign.")


def alone(here: Project, op: str, found: Solution, target: str | None) -> Manifest:
    """What a campaign would say, for a version that is judged outside of one."""
    from warpsmith.core.base import this_minute
    from warpsmith.core.campaign import Manifest
    from warpsmith.lab.machine import hardware

    chosen = target or hardware.at_hand(here).id
    return Manifest(
        campaign="none", target_op=op, target=chosen, target_language=found.language, created=this_minute()
    )
