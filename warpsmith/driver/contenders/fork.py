"""Fork of a campaign: a project of its own in `.warpsmith/`, in which one contender is planned and designed.

It has copies of the operator's versions and of the campaign, with its open round, and links to all else. The loop
and the commands work there as they do in the project itself.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from warpsmith import files, project
from warpsmith.campaign import tries
from warpsmith.campaign.history import store
from warpsmith.campaign.history.store import PROFILES, SPENT, Campaign
from warpsmith.campaign.jobs.send import FORKS
from warpsmith.campaign.rounds.state import CampaignState
from warpsmith.ledger.lock import HOLDER, LOCK

_BASIS = "basis"
"""File that says what a fork was made from; it is written last."""

_LEFT_OUT = shutil.ignore_patterns(
    LOCK, HOLDER, PROFILES, f"{SPENT}.json", "__pycache__", f"{files.TEMPORARY_PREFIX}*"
)


def forks_folder(campaign: Campaign) -> Path:
    """Folder of a campaign's forks."""
    return campaign.project.root.joinpath(*FORKS, campaign.name)


def fork_campaign(state: CampaignState, number: int) -> Campaign:
    """Return the campaign in the fork of a contender; one that an interrupted run left for this round goes on."""
    campaign = state.campaign
    folder = forks_folder(campaign) / f"{state.number:03d}-{number}"
    basis = _describe_basis(state)
    if not (folder / _BASIS).is_file() or (folder / _BASIS).read_text() != basis:
        shutil.rmtree(folder, ignore_errors=True)
        files.hide_from_git(forks_folder(campaign).parent)
        _make_fork(campaign, folder)
        files.write_file(folder / _BASIS, basis)
    return store.find_campaign(project.find_project(folder), campaign.name)


def adopt_forks(campaign: Campaign) -> None:
    """Adopt the logs of what the contenders tried, and remove the forks of a campaign; its round has the rest."""
    manifest, folder = campaign.manifest, forks_folder(campaign)
    for fork in sorted(path.parent for path in folder.glob(f"*/{_BASIS}")):
        tries.adopt_logs(campaign.project, project.find_project(fork), manifest.target_op, manifest.target)
    shutil.rmtree(folder, ignore_errors=True)


def _describe_basis(state: CampaignState) -> str:
    """Describe what a contender starts from: the best version, the round before, and the language."""
    best, last = state.best, state.rounds[-1] if state.rounds else None
    selection = state.open.selection
    parts = (best and best.snapshot_sha256, last and last.sha256, selection and selection.model_dump_json())
    return "\n".join(str(part) for part in parts)


def _make_fork(campaign: Campaign, folder: Path) -> None:
    owner, op = campaign.project, campaign.manifest.target_op
    files.write_file(folder / project.MARKER, f"# A fork of {owner.root} for one contender of a round.\n")
    _link_siblings(owner.kernels / op, folder / "kernels")
    shutil.copytree(owner.kernels / op, folder / "kernels" / op, ignore=_LEFT_OUT)
    _link_siblings(owner.devlog / op, folder / "devlog")
    _link_siblings(campaign.folder, folder / "devlog" / op)
    own = folder / "devlog" / op / campaign.name
    shutil.copytree(campaign.folder, own, ignore=_LEFT_OUT)
    if (campaign.folder / PROFILES).is_dir():
        (own / PROFILES).symlink_to(campaign.folder / PROFILES)
    if owner.knowledge.is_dir():
        (folder / "docs").mkdir()
        (folder / "docs" / "knowledge").symlink_to(owner.knowledge)


def _link_siblings(copied: Path, folder: Path) -> None:
    """Link everything beside `copied` into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in copied.parent.iterdir():
        if path.name != copied.name and not path.name.startswith(files.TEMPORARY_PREFIX):
            (folder / path.name).symlink_to(path)
