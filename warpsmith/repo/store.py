"""A repo campaign on disk: its manifest, the ledger of its rounds, and the open round."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from warpsmith import files
from warpsmith import project as projects
from warpsmith.core.repo import OpenPlan, RepoEvaluation, RepoManifest, RepoRecord, Workspace
from warpsmith.errors import CorruptRecord, LeftOut, Misuse
from warpsmith.ledger.lock import LOCK, hold_lock
from warpsmith.ledger.store import Ledger, StoredRecord
from warpsmith.project import Project
from warpsmith.system_faults import describe_os_error

MANIFEST, CHANGE = "campaign.json", "change.diff"
PLAN, VERDICT, FINAL, WORKSPACE = "plan.json", "verdict.json", "final.json", "workspace.json"
STATE = ".warpsmith/repo"
"""Folder below the project's root with the worktrees, logs and lock of each campaign; it holds no record."""

StoredRepoRound: TypeAlias = StoredRecord[RepoRecord]
"""A closed round of a repo campaign as it is on disk."""


@dataclass(frozen=True)
class RepoLedger(Ledger[RepoRecord]):
    """The rounds of one repo campaign."""

    def verify(self, stored: StoredRepoRound, attachments: list[str]) -> StoredRepoRound:
        """Check the number of a record; raises CorruptRecord if it is another round's."""
        if stored.record.round != stored.number:
            raise self.corrupt(stored.path, f"says that it is round {stored.record.round}")
        return super().verify(stored, attachments)


@dataclass(frozen=True)
class RepoCampaign:
    """A campaign on a kernel in its own repository."""

    project: Project
    """The project that the kernel belongs to."""
    manifest: RepoManifest
    """The campaign's settings."""

    @property
    def name(self) -> str:
        """Name of the campaign."""
        return self.manifest.campaign

    @property
    def folder(self) -> Path:
        """Folder of its records and pages: `<devlog>/repo/<name>`."""
        return records_folder(self.project, self.name)

    @property
    def state(self) -> Path:
        """Folder of its worktrees and logs."""
        return state_folder(self.project, self.name)

    @cached_property
    def ledger(self) -> RepoLedger:
        """The store of its rounds."""
        return repo_ledger(self.project, self.name)

    @property
    def rounds(self) -> Path:
        """Folder of its rounds."""
        return self.ledger.folder

    @property
    def open(self) -> Path:
        """Folder of the open round, with one file for each finished part."""
        return self.ledger.open

    def plan(self) -> OpenPlan | None:
        """Read the open round's plan, None if there is none; raises CorruptRecord."""
        return self.ledger.read_model(self.open / PLAN, OpenPlan)

    def verdict(self) -> RepoEvaluation | None:
        """Read the open round's evaluation, None if there is none; raises CorruptRecord."""
        return self.ledger.read_model(self.open / VERDICT, RepoEvaluation)

    def final(self) -> RepoEvaluation | None:
        """Read the last full evaluation of the best commit against the start of the campaign.

        Raises:
            CorruptRecord: the file does not read.
        """
        return self.ledger.read_model(self.folder / FINAL, RepoEvaluation)

    def workspace(self) -> Workspace | None:
        """Read the workspace, None if there is none; raises CorruptRecord."""
        return self.ledger.read_model(self.folder / WORKSPACE, Workspace)

    def closed_rounds(self) -> list[StoredRepoRound]:
        """Read the closed rounds in order, digests and chain checked; raises CorruptRecord."""
        return self.ledger.read_all()


def records_folder(project: Project, name: str) -> Path:
    """Folder of a campaign's records."""
    return project.devlog / "repo" / name


def state_folder(project: Project, name: str) -> Path:
    """Folder of a campaign's worktrees, logs and lock."""
    return project.root / STATE / name


def repo_ledger(project: Project, name: str) -> RepoLedger:
    """Ledger of a campaign's rounds."""
    repair = f"warpsmith repo resume --campaign {name}"
    return RepoLedger(records_folder(project, name) / "rounds", RepoRecord, "round", repair)


def list_repo_ledgers(project: Project) -> list[RepoLedger]:
    """List the ledgers of every repo campaign, by name."""
    folders = records_folder(project, "").glob("*/rounds")
    return [repo_ledger(project, path.parent.name) for path in sorted(folders)]


def find_repo_project(start: Path) -> Project:
    """Find the project that `start` lies in; inside of a campaign's worktree, the project of the campaign.

    Raises:
        Misuse: the configuration does not parse, or holds an unknown key.
    """
    state = PurePosixPath(STATE).parts
    above = [folder for folder in start.parents if folder.parts[-len(state) :] == state]
    return projects.find_project(above[-1].parents[len(state) - 1] if above else start)


def list_repo_campaigns(project: Project) -> list[RepoCampaign]:
    """List every repo campaign by name; one whose manifest does not read is left out, with a warning."""
    campaigns = []
    for path in sorted(records_folder(project, "").glob(f"*/{MANIFEST}")):
        try:
            manifest = repo_ledger(project, path.parent.name).read_model(path, RepoManifest, f"git restore {path}")
        except CorruptRecord as error:
            warnings.warn(f"{error} Its campaign is left out until then.", LeftOut, stacklevel=2)
            continue
        campaigns += [RepoCampaign(project, manifest)] if manifest else []
    return campaigns


def find_repo_campaign(project: Project, name: str | None) -> RepoCampaign:
    """Find the campaign of that name; without a name, the only one.

    Raises:
        Misuse: no campaign matches, or several do.
    """
    campaigns = list_repo_campaigns(project)
    matches = [campaign for campaign in campaigns if name in (None, campaign.name)]
    if len(matches) != 1:
        names = f"there are: {', '.join(c.name for c in campaigns)}" if campaigns else "start one"
        problem = f"No repo campaign `{name}`" if name else "Which repo campaign? Name it with --campaign"
        raise Misuse(f"{problem}; {names} (`warpsmith repo start NAME`).")
    return matches[0]


@contextmanager
def hold_repo_campaign(project: Project, name: str, command: str) -> Iterator[None]:
    """Hold a campaign for writing by a command of `warpsmith repo`.

    Raises:
        Busy: another process holds it.
        MachineLacks: its folders cannot be written to.
    """
    state, ledger = state_folder(project, name), repo_ledger(project, name)
    try:
        state.mkdir(parents=True, exist_ok=True)
        (state.parent / ".gitignore").write_text("*\n")
        with hold_lock(state / LOCK, name, f"warpsmith repo {command}", ledger.repair):
            for folder in (records_folder(project, name), ledger.folder, state):
                files.sweep_unfinished(folder)
            yield
    except OSError as error:
        raise describe_os_error(error, at=state) from error
