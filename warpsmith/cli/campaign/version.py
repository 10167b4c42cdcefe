"""Find the campaign that waits for the version of a command, or a manifest for a version without one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.errors import MissingInput, Misuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warpsmith.campaign.history.solutions import Solution
    from warpsmith.campaign.history.store import Campaign
    from warpsmith.campaign.rounds.state import CampaignState
    from warpsmith.core.campaign import Manifest
    from warpsmith.project import Project

_FILE_HELP = "Version: kernels/<op>/<language>/v<N>.<ending>"
File = Annotated[Path, typer.Argument(help=f"{_FILE_HELP}.")]
DueFile = Annotated[
    Path | None, typer.Argument(help=f"{_FILE_HELP}; by default the one that is due in the campaign.")
]
VersionCampaign = Annotated[
    str | None,
    typer.Option("--campaign", help="Name of the campaign; by default the one where this version is due."),
]


def find_version(project: Project, path: Path) -> tuple[str, Solution]:
    """Find the operator and the version of a file, whose path may begin at the root of the project, as commands
    print it, and may lack the end that a campaign gives its versions if only one file fits.

    Raises:
        MissingInput: there is no such file.
        Misuse: it is a folder, or its path is not `kernels/<op>/<language>/v<N><suffix>`.
    """
    import re

    from warpsmith.campaign import lab_requests
    from warpsmith.core.text import VERSION

    for file in (path, project.root / path):
        if file.exists():
            return lab_requests.locate_version(project, file)
    for file in (path, project.root / path):
        similar = sorted(file.parent.glob(f"{file.stem}_*{file.suffix}"))
        fits = [other for other in similar if re.fullmatch(VERSION, other.stem)]
        if len(fits) == 1:
            return lab_requests.locate_version(project, fits[0])
        if fits:
            names = ", ".join(other.name for other in fits)
            raise MissingInput(f"{path} does not exist; name one of {names} in full.")
    return lab_requests.locate_version(project, path)


def tell_version(campaign: Campaign, due: Solution) -> None:
    """Tell which version a command works on that names none."""
    console.tell(f"{campaign.name}: {campaign.project.relative(due.path)}")


def find_campaign_of(project: Project, op: str, version: Solution, name: str | None) -> Campaign | None:
    """Return the named campaign, else the only campaign that waits for this version, or None.

    Of several, it is the only one that was started in this checkout.

    Raises:
        Misuse: the named campaign has another operator, or the campaign waits for this number under another name.
    """
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import state

    if name:
        chosen = store.find_campaign(project, name)
        if chosen.manifest.target_op != op:
            raise Misuse(
                f"{chosen.name} optimizes {chosen.manifest.target_op}, but {version.name} is a version of {op}."
            )
        _refuse_without_suffix(state.read_state(chosen), version)
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
        elif current and not current.closure:
            _refuse_without_suffix(current, version)
    own = [campaign for campaign in campaigns if store.is_started_here(project, campaign.name)]
    if len(campaigns) > 1 and len(own) == 1:
        return own[0]
    if len(campaigns) > 1:
        names = ", ".join(campaign.name for campaign in campaigns)
        console.tell(
            f"{version.name} belongs to several campaigns ({names}) and counts in none; name one with --campaign."
        )
    return campaigns[0] if len(campaigns) == 1 else None


def _refuse_without_suffix(current: CampaignState, version: Solution) -> None:
    """Raise Misuse for `v2` where the campaign waits for `v2_k2f9` and has no such file."""
    due, manifest = current.solution, current.campaign.manifest
    if due is None or version.name == due.name or due.path.exists():
        return
    if (version.language, f"{version.version}_{manifest.version_suffix}") == (due.language, due.version):
        raise Misuse(
            f"The versions of {manifest.campaign} end in `_{manifest.version_suffix}`, so that those of two clones"
            f" differ; run `mv {version.path} {due.path}` and judge that."
        )


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


def require_no_options(options: Mapping[str, object]) -> None:
    """Raise Misuse if a command without a version has an option for versions outside of campaigns."""
    chosen = [option for option, value in options.items() if value]
    if chosen:
        raise Misuse(f"{' and '.join(chosen)} is for a version outside of a campaign; name its file.")


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
