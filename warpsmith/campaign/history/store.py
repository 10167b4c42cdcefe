"""Campaign: its folder, its closed rounds in order, and the finished parts of the open round."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from warpsmith import files
from warpsmith.campaign.history import index, journal, manifests, records, stopping
from warpsmith.campaign.history.journal import JournalLine
from warpsmith.campaign.history.manifests import MANIFEST as MANIFEST
from warpsmith.campaign.history.records import RoundLedger, StoredRound
from warpsmith.core.base import Model
from warpsmith.core.campaign import Closure, Manifest, Masks, RoundRecord
from warpsmith.core.evaluation import Verdict
from warpsmith.core.spend import Spend, Spending
from warpsmith.errors import CorruptRecord, LeftOut, Misuse
from warpsmith.ledger.lock import LOCK, hold_lock
from warpsmith.ledger.store import write_model
from warpsmith.project import Project

MASKS, CLOSED = "masks.json", "closed.json"
PROFILES = "profiles"
"""Folder of the reports behind a campaign's profiles."""
SPENT = "spent"
"""Cost of the open round's agents; the file lies next to the parts of the round and is none of them."""
ENVIRONMENT = "WARPSMITH_CAMPAIGN"
"""Environment variable that names the campaign if no `--campaign` does."""

_STARTED = "started"
"""Folder of scratch with an empty file for each campaign that was started in this checkout."""
_START_COMMAND = "`warpsmith start OP --target TARGET --language LANGUAGE`"

M = TypeVar("M", bound=Model)


class Progress(Model):
    """Progress of a campaign by the records of its closed rounds."""

    stop: str | None
    """Stop condition that holds, in words; null if none does."""
    accepted: dict[int, str]
    """Versions that joined the lineage and were not struck, by number of the round, in order."""
    untimed: dict[int, str] = {}
    """Versions that passed a port campaign's checks and were not struck, by number of the round, in order."""
    unrun: tuple[str, ...] = ()
    """Versions that a port campaign judged, whatever the verdict; empty for other campaigns."""


@dataclass(frozen=True)
class Campaign:
    """The work on one definition for one target, in rounds; everything else is read from its folder."""

    project: Project
    """The project that the campaign belongs to."""
    folder: Path
    """Folder of the campaign: `<devlog>/<op>/<campaign>`."""
    manifest: Manifest
    """The campaign's settings."""

    @property
    def name(self) -> str:
        """The campaign's name."""
        return self.manifest.campaign

    @cached_property
    def ledger(self) -> RoundLedger:
        """The store of the campaign's rounds."""
        return records.round_ledger(self.folder / "rounds", self.name)

    @property
    def rounds(self) -> Path:
        """The folder of its rounds."""
        return self.ledger.folder

    @property
    def open(self) -> Path:
        """The folder of the open round, with one file for each finished part."""
        return self.ledger.open

    def closed_rounds(self) -> list[StoredRound]:
        """Read the closed rounds with their hashes, in order; raises CorruptRecord."""
        return self.ledger.read_all()

    def records(self) -> list[RoundRecord]:
        """Read the records of the closed rounds, in order; raises CorruptRecord."""
        return [stored.record for stored in self.closed_rounds()]

    def masks(self) -> Masks | None:
        """Read which rounds planning does not see, None if it sees all; raises CorruptRecord."""
        return self.ledger.read_model(self.folder / MASKS, Masks)

    def closure(self) -> Closure | None:
        """Read the campaign's end, None if it goes on; raises CorruptRecord."""
        return self.ledger.read_model(self.folder / CLOSED, Closure)

    def read_part(self, name: str, model: type[M]) -> M | None:
        """Read a finished part of the open round, None if it is not there; raises CorruptRecord."""
        return self.ledger.read_model(self.open / f"{name}.json", model)

    def write_part(self, name: str, part: Model) -> Path:
        """Write a finished part of the open round; return its file."""
        path = self.open / f"{name}.json"
        write_model(path, part)
        if name != SPENT:
            journal.append_part(self.folder, self.ledger.next_number(), name, path, part)
        return path

    def drop_part(self, name: str) -> None:
        """Remove a part of the open round on purpose, if it is there; the journal then does not miss it."""
        path = self.open / f"{name}.json"
        if path.exists():
            journal.drop_part_line(self.folder, self.ledger.next_number(), name, path)
            path.unlink()

    def journal(self) -> list[JournalLine]:
        """Read which parts of rounds were written; raises CorruptRecord."""
        return journal.read_journal_lines(self.folder, self.ledger.repair)

    def spent(self) -> tuple[Spend, ...]:
        """Read what the agents of the open round cost; raises CorruptRecord."""
        spending = self.read_part(SPENT, Spending)
        return spending.queries if spending else ()

    def add_spend(self, spend: Spend) -> None:
        """Add the cost of one more query, whatever its result; raises CorruptRecord."""
        self.write_part(SPENT, Spending(queries=(*self.spent(), spend)))

    def drop_open(self) -> None:
        """Remove the open round in one step, as readers see it."""
        self.ledger.drop_open()


def hold_campaign(campaign: Campaign, command: str) -> AbstractContextManager[None]:
    """Hold the campaign for writing by `command`; readers need not.

    Raises:
        Busy: another process holds it; the message names it.
        MachineLacks: the disk takes no more data; everything written before is whole.
    """
    return hold_lock(campaign.folder / LOCK, campaign.name, command, campaign.ledger.repair)


def read_campaign(project: Project, folder: Path) -> Campaign:
    """Read the campaign in a folder; raises CorruptRecord if its manifest does not read."""
    return Campaign(project, folder, manifests.read_manifest(folder))


def list_campaigns(project: Project, op: str = "*") -> list[Campaign]:
    """List the campaigns of a project or of one operator by operator and name.

    One whose manifest does not read is left out, with a warning of the class LeftOut.
    """
    campaigns, errors = read_campaigns(project, op)
    for error in errors.values():
        warn_left_out(error)
    return campaigns


def read_campaigns(project: Project, op: str = "*") -> tuple[list[Campaign], dict[Path, CorruptRecord]]:
    """Read the campaigns of a project or of one operator; return also the manifests that do not read, each with
    its error."""
    campaigns, errors = [], {}
    for folder in manifests.campaign_folders(project, op):
        try:
            campaigns.append(read_campaign(project, folder))
        except CorruptRecord as error:
            errors[folder / MANIFEST] = error
    return campaigns, errors


def warn_left_out(error: CorruptRecord) -> None:
    """Warn of a file that does not read, without which a command goes on."""
    warnings.warn(f"{error} Its campaign is left out until then.", LeftOut, stacklevel=3)


def find_campaign(project: Project, name: str | None = None) -> Campaign:
    """Find the campaign that a command means.

    That is the campaign of this name, or the only unfinished one of the operator of this name; without a name that
    of $WARPSMITH_CAMPAIGN, else the only unfinished one, else the only unfinished one that was started in this
    checkout, else the only one.

    Raises:
        Misuse: no campaign matches, or several do.
        CorruptRecord: the manifest of the one that matches does not read.
    """
    name = name or os.environ.get(ENVIRONMENT)
    if name:
        return find_named_campaign(project, name)
    folders = manifests.campaign_folders(project)
    unfinished = _unfinished(project, folders) if len(folders) > 1 else folders
    own = [folder for folder in unfinished if is_started_here(project, folder.name)]
    for choices in (unfinished, own):
        if len(choices) == 1:
            return read_campaign(project, choices[0])
    if folders:
        names = _list_names(own or unfinished or folders)
        raise Misuse(f"Which campaign? Name it or its operator with --campaign; {names}.")
    raise Misuse(f"There is no campaign in {project.root}; start one with {_START_COMMAND}.")


def find_named_campaign(project: Project, name: str) -> Campaign:
    """Find the campaign of this name, or the only unfinished one of the operator of this name.

    Raises:
        Misuse: no campaign matches, or several do.
        CorruptRecord: the manifest of the one that matches does not read.
    """
    folders = manifests.campaign_folders(project)
    matches = [folder for folder in folders if folder.name == name]
    matches = matches or _unfinished(project, [folder for folder in folders if folder.parent.name == name])
    if len(matches) == 1:
        return read_campaign(project, matches[0])
    if matches:
        raise Misuse(f"Which campaign of {name}? Name one in full; {_list_names(matches)}.")
    raise Misuse(f"`{name}` is no campaign, and no operator with an open one; {_list_names(folders)}.")


def mark_started(campaign: Campaign) -> None:
    """Mark a campaign as started in this checkout, where commands without a name mean it; git ignores the mark."""
    scratch = campaign.project.scratch
    files.hide_from_git(scratch)
    files.write_file(scratch / _STARTED / campaign.name, "")


def is_started_here(project: Project, name: str) -> bool:
    """Return whether a campaign was started in this checkout, so that it did not come by a clone or a merge."""
    return (project.scratch / _STARTED / name).exists()


def find_current_campaign(project: Project) -> Campaign | None:
    """Return the campaign that is worked on; None if there is none, or several."""
    try:
        campaign = find_campaign(project)
    except (Misuse, CorruptRecord):
        return None
    return None if is_finished(campaign) else campaign


def is_finished(campaign: Campaign) -> bool:
    """Return whether a campaign is closed or a stop condition holds; one with a corrupt record is not finished."""
    return not _unfinished(campaign.project, [campaign.folder])


def read_progress(project: Project, folders: Sequence[Path]) -> list[Progress | None]:
    """Return the progress of campaigns by their folders; None for one with a corrupt record or manifest."""

    def measure(folder: Path) -> Progress:
        return measure_progress(read_campaign(project, folder))

    return index.derive_from_rounds(project.root, folders, "progress", Progress, measure)


def measure_progress(campaign: Campaign) -> Progress:
    """Return the progress of a campaign from its records; raises CorruptRecord."""
    rounds, port = campaign.records(), campaign.manifest.port
    return Progress(
        stop=stopping.recorded_stop(campaign.manifest, rounds),
        accepted={r.round: r.solution for r in rounds if r.verdict.accepted and not port},
        untimed={record.round: record.solution for record in rounds if record.verdict is Verdict.UNTIMED},
        unrun=tuple(record.solution for record in rounds) if port else (),
    )


def _unfinished(project: Project, folders: Sequence[Path]) -> list[Path]:
    """List the folders of campaigns that are neither closed nor stopped; one with a corrupt record is neither.

    One whose manifest does not read is left out, with a warning of the class LeftOut.
    """
    going = [folder for folder in folders if not _is_closed(folder)]
    unfinished = []
    for folder, reached in zip(going, read_progress(project, going), strict=True):
        try:
            if reached is None:
                manifests.read_manifest(folder)
        except CorruptRecord as error:
            warn_left_out(error)
        else:
            if reached is None or not reached.stop:
                unfinished.append(folder)
    return unfinished


def _is_closed(folder: Path) -> bool:
    try:
        return bool(Closure.model_validate_json((folder / CLOSED).read_bytes()))
    except (OSError, ValidationError):
        return False


def _list_names(folders: list[Path]) -> str:
    names = ", ".join(folder.name for folder in folders)
    return f"there are: {names}" if folders else f"there is none; start one with {_START_COMMAND}"
