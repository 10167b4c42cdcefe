"""Campaign: its folder, its records in order, and the finished steps of the open round."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import ValidationError

from warpsmith import files
from warpsmith.campaign.history import records, stopping
from warpsmith.campaign.history.records import Kept
from warpsmith.core.base import Model
from warpsmith.core.campaign import Manifest, Masks, RoundRecord
from warpsmith.core.problem import problem
from warpsmith.core.spend import Spend, Spending
from warpsmith.errors import CorruptRecord, Misuse
from warpsmith.ledger import model_file
from warpsmith.project import Project

MANIFEST, MASKS = "manifest.yaml", "masks.json"
SPENT = "spent"
"""What the open round's agents cost: beside its steps, and none of them."""
ENVIRONMENT = "WARPSMITH_CAMPAIGN"
"""Names the campaign where no `--campaign` does."""

_BEGIN = "`warpsmith start OP --target TARGET --language LANGUAGE`"

M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Campaign:
    """One definition on one target, worked on in rounds; everything else is read from its folder."""

    project: Project
    """Whose."""
    folder: Path
    """`<devlog>/<op>/<campaign>`."""
    manifest: Manifest
    """What it is about."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.manifest.campaign

    @property
    def rounds(self) -> Path:
        """The folder of its rounds."""
        return self.folder / "rounds"

    @property
    def open(self) -> Path:
        """The open round: one file a finished step."""
        return self.rounds / "open"

    def kept(self) -> list[Kept]:
        """The closed rounds with their hashes, verified; raises CorruptRecord."""
        return records.read_all(self.rounds, self.name)

    def records(self) -> list[RoundRecord]:
        """The closed rounds' records in order, verified; raises CorruptRecord."""
        return [kept.record for kept in self.kept()]

    def masks(self) -> Masks | None:
        """Which rounds are left out of memory; raises CorruptRecord."""
        return self._read(self.folder / MASKS, Masks)

    def step(self, name: str, model: type[M]) -> M | None:
        """A finished step of the open round, None where it is not there; raises CorruptRecord."""
        return self._read(self.open / f"{name}.json", model)

    def write_step(self, name: str, model: Model) -> Path:
        """Finish a step of the open round; returns its file."""
        path = self.open / f"{name}.json"
        files.write(path, model.model_dump_json(indent=2) + "\n")
        return path

    def spent(self) -> tuple[Spend, ...]:
        """What the agents of the open round cost; raises CorruptRecord."""
        found = self.step(SPENT, Spending)
        return found.queries if found else ()

    def add_spend(self, spend: Spend) -> None:
        """Keep what one more query cost, whatever became of it; raises CorruptRecord."""
        self.write_step(SPENT, Spending(queries=(*self.spent(), spend)))

    def drop_open(self) -> None:
        """Remove the open round, at once for whoever looks."""
        files.remove(self.open)

    def _read(self, path: Path, model: type[M]) -> M | None:
        return model_file.read(path, model, lambda path, what: records.corrupt(path, what, self.name))


def read(project: Project, folder: Path) -> Campaign:
    """The campaign in a folder.

    Raises:
        Misuse: its manifest does not read.
    """
    path = folder / MANIFEST
    try:
        manifest = Manifest.model_validate(yaml.safe_load(path.read_text()))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValidationError) as error:
        raise Misuse(f"{path} does not read: {problem(error)}; mend it.") from error
    if manifest.campaign != folder.name:
        raise Misuse(f"{path} is of campaign `{manifest.campaign}`; give the folder that name.")
    return Campaign(project, folder, manifest)


def all(project: Project) -> list[Campaign]:
    """Every campaign of the project by operator and name; raises Misuse."""
    return [read(project, folder) for folder in _folders(project)]


def find(project: Project, name: str | None = None) -> Campaign:
    """The campaign of that name, else of $WARPSMITH_CAMPAIGN, else the only unfinished or only one.

    Raises:
        Misuse: there is none, or more than one could be meant.
    """
    folders = _folders(project)
    name = name or os.environ.get(ENVIRONMENT)
    if name:
        named = [folder for folder in folders if folder.name == name]
        if not named:
            raise Misuse(f"No campaign `{name}`; {_listed(folders)}.")
        return read(project, named[0])
    campaigns = [read(project, folder) for folder in folders]
    unfinished = [c for c in campaigns if not finished(c)] if len(campaigns) > 1 else campaigns
    if len(unfinished) == 1:
        return unfinished[0]
    if folders:
        raise Misuse(f"Which campaign? Name it with --campaign; {_listed(folders)}.")
    raise Misuse(f"There is no campaign in {project.root}; {_BEGIN} begins one.")


def finished(campaign: Campaign) -> bool:
    """Whether a stop condition holds; a campaign with a corrupt record is not finished."""
    try:
        kept = campaign.records()
    except CorruptRecord:
        return False
    best = records.best(kept)
    return stopping.reason(campaign.manifest, best.evaluation if best else None, len(kept)) is not None


def _folders(project: Project) -> list[Path]:
    return sorted(path.parent for path in project.devlog.glob(f"*/*/{MANIFEST}"))


def _listed(folders: list[Path]) -> str:
    return f"there are: {', '.join(f.name for f in folders)}" if folders else f"there is none; {_BEGIN} begins one"
