"""Amendment: a wrong definition is mended, and a new campaign goes on with it and cites the old one."""

from __future__ import annotations

import shutil
from pathlib import Path

from warpsmith import files
from warpsmith.campaign import define, start
from warpsmith.campaign.history import closing, store
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.rounds.state import read_state
from warpsmith.core.text import Tell
from warpsmith.errors import BadDefinition, MissingInput, Misuse
from warpsmith.lab.machine import hardware
from warpsmith.lab.operator import definition_file
from warpsmith.project import Project
from warpsmith.temporary import TemporaryFolder

_INHERITED = (
    "objective", "shapes", "git", "performance_target", "max_iterations", "minimum_gain", "minimum_gain_per",
    "earlier_work", "withheld", "thresholds", "peers", "port", "context",
)  # fmt: skip
"""Settings of the manifest that the new campaign takes over."""


def amend_campaign(
    project: Project, name: str, source: Path | None, reason: str, tell: Tell = lambda _: None
) -> Campaign:
    """Prove a mended definition, close the campaign, and start another one on the definition.

    Finished campaigns that the old definition judged are closed too. The old definition stays in the closed
    campaign's folder. After an interruption the same call goes on.

    Args:
        project: the project.
        name: the campaign, or an operator with one open campaign.
        source: file of the mended definition; None if it is in its place already.
        reason: fault of the old definition.
        tell: takes lines of progress.

    Raises:
        MissingInput: there is no such file.
        BadDefinition: the mended definition is not proven.
        Misuse: no campaign matches, it is closed, the definition has not changed, or another campaign uses it.
    """
    campaign = store.find_named_campaign(project, name)
    closing.parse_closure(reason)
    with store.hold_campaign(campaign, "warpsmith amend"):
        closing.refuse_closed(campaign)
        successor = _require_alone(campaign)
        _put_in_place(campaign, source, tell)
        if successor is None:
            manifest = campaign.manifest
            settings = manifest.model_dump(include=set(_INHERITED))
            page = hardware.read_target_page(project, manifest.target)
            successor = start.start_campaign(
                project, manifest.target_op, manifest.target, manifest.target_language,
                figures=define.manifest_figures(page), amends=campaign.name, **settings,
            )  # fmt: skip
        for other in _list_finished(campaign):
            with store.hold_campaign(other, "warpsmith amend"):
                closing.close_campaign(other, reason, successor.name)
        closing.close_campaign(campaign, reason, successor.name)
    return successor


def list_amended(successor: Campaign) -> list[Campaign]:
    """List the campaigns that the start of another one closed."""
    others = store.list_campaigns(successor.project, successor.manifest.target_op)
    closures = ((other, other.closure()) for other in others)
    return [other for other, closure in closures if closure and closure.amended_by == successor.name]


def _list_finished(campaign: Campaign) -> list[Campaign]:
    """List the other campaigns that finished with the definition that judged this one; those that do not read are
    left out."""
    old = _frozen_sha256(campaign)
    return [
        other
        for other in store.list_campaigns(campaign.project, campaign.manifest.target_op)
        if other.name != campaign.name
        and store.is_finished(other)
        and other.closure() is None
        and old is not None
        and _frozen_sha256(other) == old
    ]


def _require_alone(campaign: Campaign) -> Campaign | None:
    """Return the campaign that an interrupted amendment started; raise Misuse if others use the definition."""
    others = [
        other
        for other in closing.list_open_campaigns(campaign.project, campaign.manifest.target_op)
        if other.name != campaign.name
    ]
    successor = next((other for other in others if other.manifest.amends == campaign.name), None)
    if other := next((other for other in others if other is not successor), None):
        raise Misuse(
            f"{other.name} is judged by the same definition; first end it with `warpsmith abandon {other.name}`."
        )
    return successor


def _put_in_place(campaign: Campaign, source: Path | None, tell: Tell) -> None:
    """Prove the mended definition, keep a copy of the old one in the campaign's folder, and replace it."""
    project, op = campaign.project, campaign.manifest.target_op
    path = project.definition_path(op)
    if source is None:
        if definition_file.definition_sha256(path) == _frozen_sha256(campaign):
            raise Misuse(f"{path} has not changed; name a mended one with --definition.")
        define.require_proven(definition_file.load_definition(path), tell)
        return
    if not source.is_file():
        raise MissingInput(f"{source} does not exist; write the mended definition there.")
    text = source.read_bytes()
    old_copy = campaign.folder / path.name
    if text == path.read_bytes():
        if old_copy.exists():  # an interrupted amendment has proven it and put it there
            return
        raise Misuse(f"{source} is the same as {path}; mend it first.")
    with TemporaryFolder("amend") as folder:
        copy = Path(folder) / op
        shutil.copytree(path.parent, copy, ignore=lambda _, names: [n for n in names if not n.endswith(".py")])
        (copy / path.name).write_bytes(text)
        try:
            define.require_proven(definition_file.load_definition(copy / path.name), tell)
        except BadDefinition as error:
            raise BadDefinition(str(error).replace(str((copy / path.name).resolve()), str(source))) from error
    if not old_copy.exists():
        files.write_file(old_copy, path.read_bytes())
    files.write_file(path, text)


def _frozen_sha256(campaign: Campaign) -> str | None:
    """Return the hash of the definition that the campaign was judged by last; None if nothing was judged."""
    state = read_state(campaign)
    judged = [*(record.evaluation for record in state.records), *state.open.invalid, *state.open.attempts]
    judged += [state.open.verdict] if state.open.verdict else []
    return judged[-1].provenance.definition_sha256 if judged else None
