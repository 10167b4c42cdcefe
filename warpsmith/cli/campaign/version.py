"""Find the campaign that waits for the version of a command, or a manifest for a version without one."""

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

File = Annotated[Path, typer.Argument(help="Version: kernels/<op>/<language>/v<N>.<ending>.")]


def find_campaign_of(project: Project, op: str, version: Solution, name: str | None) -> Campaign | None:
    """Return the named campaign, else the only campaign that waits for this version, or None.

    Raises:
        Misuse: the named campaign has another operator.
    """
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import state

    if name:
        chosen = store.find_campaign(project, name)
        if chosen.manifest.target_op != op:
            raise Misuse(f"{name} optimizes {chosen.manifest.target_op}, but {version.name} is a version of {op}.")
        return chosen
    campaigns = []
    for campaign in store.list_campaigns(project):
        current = state.read_state(campaign) if campaign.manifest.target_op == op else None
        if (
            current
            and not current.closure
            and (version.name == current.best_name or (current.solution and version.name == current.solution.name))
        ):
            campaigns.append(campaign)
    if len(campaigns) > 1:
        names = ", ".join(campaign.name for campaign in campaigns)
        console.tell(
            f"{version.name} belongs to several campaigns ({names}) and counts in none; name one with --campaign."
        )
    return campaigns[0] if len(campaigns) == 1 else None


def require_due_version(campaign: Campaign, requested: Solution, due: Solution) -> None:
    """Raise Misuse if the step is due for another version than the command names."""
    if requested.path != due.path:
        raise Misuse(
            f"In {campaign.name} this step is due for {due.name}, not for {requested.name};"
            f" to do it outside of a campaign, give `--target {campaign.manifest.target}` and no campaign."
        )


def refuse_with_campaign(campaign: str | None, options: Mapping[str, object]) -> None:
    """Raise Misuse if a campaign is named together with an option that its manifest sets."""
    chosen = [option for option, value in options.items() if value]
    if campaign and chosen:
        raise Misuse(f"The campaign's manifest sets that; omit {' and '.join(chosen)}, or --campaign.")


def standalone_manifest(
    project: Project, op: str, version: Solution, target: str | None, context: str | None = None
) -> Manifest:
    """Return a manifest for a version that is judged outside of a campaign; raises Misuse without the context."""
    from warpsmith.core.base import this_minute
    from warpsmith.core.campaign import Manifest
    from warpsmith.execution import contexts
    from warpsmith.lab.machine import hardware

    return Manifest(
        campaign="none",
        target_op=op,
        target=target or hardware.require_local_target(project).id,
        target_language=version.language,
        context=contexts.chosen_context(project, context),
        created=this_minute(),
    )
