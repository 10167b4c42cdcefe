"""A repo campaign on disk: its manifest, its rounds' records, the open round, and one writer at a time."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar

from filelock import FileLock, Timeout
from pydantic import ValidationError

from warpsmith import files
from warpsmith import project as projects
from warpsmith.core.base import Model
from warpsmith.core.problem import problem
from warpsmith.core.repo import OpenPlan, RepoJudgement, RepoManifest, RepoRecord, Workspace
from warpsmith.errors import Busy, CorruptRecord, MachineLacks, Misuse
from warpsmith.ledger import model_file
from warpsmith.project import Project

MANIFEST, RECORD, DIGEST, CHANGE = "campaign.json", "record.json", "record.sha256", "change.diff"
PLAN, VERDICT, FINAL, WORKSPACE = "plan.json", "verdict.json", "final.json", "workspace.json"
STATE = ".warpsmith/repo"
"""Under the project's root: worktrees, logs and the lock of each campaign; nothing there is a record."""

M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Kept:
    """A closed round as it stands on disk."""

    record: RepoRecord
    """Its record."""
    sha256: str
    """Hash of the record's bytes."""


@dataclass(frozen=True)
class RepoCampaign:
    """A campaign on a kernel in place."""

    project: Project
    """Whose."""
    manifest: RepoManifest
    """What it is about."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.manifest.campaign

    @property
    def folder(self) -> Path:
        """Its records and pages: `<devlog>/repo/<name>`."""
        return folder_of(self.project, self.name)

    @property
    def state(self) -> Path:
        """Its worktrees and logs."""
        return state_of(self.project, self.name)

    @property
    def rounds(self) -> Path:
        """The folder of its rounds."""
        return self.folder / "rounds"

    @property
    def open(self) -> Path:
        """The open round: one file a finished step."""
        return self.rounds / "open"

    def plan(self) -> OpenPlan | None:
        """The open round's plan; raises CorruptRecord."""
        return _read(self.open / PLAN, OpenPlan)

    def verdict(self) -> RepoJudgement | None:
        """The open round's judgement; raises CorruptRecord."""
        return _read(self.open / VERDICT, RepoJudgement)

    def final(self) -> RepoJudgement | None:
        """The last full judgement of the best commit against the one that all began at; raises CorruptRecord."""
        return _read(self.folder / FINAL, RepoJudgement)

    def workspace(self) -> Workspace | None:
        """The workspace; raises CorruptRecord."""
        return _read(self.folder / WORKSPACE, Workspace)

    def kept(self) -> list[Kept]:
        """The closed rounds in order, digests and chain checked; raises CorruptRecord."""
        names = [path.name for path in self.rounds.iterdir()] if self.rounds.is_dir() else []
        found: list[Kept] = []
        for number in sorted(int(name) for name in names if re.fullmatch(r"\d{3}", name)):
            kept = _kept(self.rounds / f"{number:03d}" / RECORD)
            previous = found[-1].sha256 if found else None
            if kept.record.round != number or kept.record.previous_sha256 != previous or number != len(found) + 1:
                raise _corrupt(self.rounds / f"{number:03d}" / RECORD, "does not follow the round before it")
            found.append(kept)
        return found

    def publish(self, record: RepoRecord, change: bytes) -> None:
        """Make a round's folder appear with its record."""
        data = record.model_dump_json(indent=2).encode() + b"\n"
        digest = f"{hashlib.sha256(data).hexdigest()}  {RECORD}\n"
        files.publish({CHANGE: change, DIGEST: digest, RECORD: data}, self.rounds / f"{record.round:03d}")

    def drop_open(self) -> None:
        """Remove the open round, at once for whoever looks."""
        files.remove(self.open)


def folder_of(project: Project, name: str) -> Path:
    """Where a campaign's records are."""
    return project.devlog / "repo" / name


def state_of(project: Project, name: str) -> Path:
    """Where a campaign's worktrees are."""
    return project.root / STATE / name


def home(start: Path) -> Project:
    """The project that `start` lies in; of a campaign's worktree it is the one that the campaign is of.

    Raises:
        Misuse: the configuration does not parse, or holds an unknown key.
    """
    state = PurePosixPath(STATE).parts
    above = [folder for folder in start.parents if folder.parts[-len(state) :] == state]
    return projects.find(above[-1].parents[len(state) - 1] if above else start)


def all(project: Project) -> list[RepoCampaign]:
    """Every repo campaign by name; raises CorruptRecord."""
    found = sorted(folder_of(project, "").glob(f"*/{MANIFEST}"))
    manifests = [_read(path, RepoManifest) for path in found]
    return [RepoCampaign(project, manifest) for manifest in manifests if manifest]


def find(project: Project, name: str | None) -> RepoCampaign:
    """The campaign of that name, or the only one.

    Raises:
        Misuse: there is none, or more than one could be meant.
    """
    campaigns = all(project)
    named = [campaign for campaign in campaigns if name in (None, campaign.name)]
    if len(named) != 1:
        there = f"there are: {', '.join(c.name for c in campaigns)}" if campaigns else "start one"
        what = f"No repo campaign `{name}`" if name else "Which repo campaign? Name it with --campaign"
        raise Misuse(f"{what}; {there} (`warpsmith repo start NAME`).")
    return named[0]


def write(path: Path, model: Model) -> None:
    """Keep a model in a file."""
    files.write(path, model.model_dump_json(indent=2) + "\n")


@contextmanager
def hold(project: Project, name: str) -> Iterator[None]:
    """Hold a campaign for writing.

    Raises:
        Busy: another process holds it.
        MachineLacks: its folders cannot be written to.
    """
    state = state_of(project, name)
    try:
        state.mkdir(parents=True, exist_ok=True)
        (state.parent / ".gitignore").write_text("*\n")
        lock = FileLock(state / ".lock", timeout=files.LET_GO)
        lock.acquire()
    except Timeout:
        raise Busy(f"{name} is held by another `warpsmith repo`; wait until it is done.") from None
    except OSError as error:
        raise _unwritable(error) from error
    try:
        for place in (folder_of(project, name), folder_of(project, name) / "rounds", state):
            files.sweep(place)
        yield
    except OSError as error:
        raise _unwritable(error) from error
    finally:
        lock.release()


def _unwritable(error: OSError) -> MachineLacks:
    what = f"{error.filename or 'A file'} cannot be written or read: {error.strerror}"
    return MachineLacks(f"{what}; what was kept before stays: mend that, then run the command again.")


def _kept(path: Path) -> Kept:
    try:
        data, digest = path.read_bytes(), path.with_name(DIGEST).read_text().split()
    except (OSError, UnicodeDecodeError) as error:
        raise _corrupt(path, f"or its digest is unreadable ({type(error).__name__})") from error
    sha256 = hashlib.sha256(data).hexdigest()
    if digest != [sha256, RECORD]:
        raise _corrupt(path, f"is torn or was edited: it does not match {DIGEST}")
    try:
        return Kept(RepoRecord.model_validate_json(data), sha256)
    except ValidationError as error:
        raise _corrupt(path, f"does not validate: {problem(error)}") from error


def _read(path: Path, model: type[M]) -> M | None:
    return model_file.read(path, model, _corrupt)


def _corrupt(path: Path, what: str) -> CorruptRecord:
    return CorruptRecord(f"{path} {what}; take it back from a backup or from git, or move it away.")
