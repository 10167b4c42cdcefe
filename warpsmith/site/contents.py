"""Contents of a site: everything that its pages show, read once from the project. What does not read is named."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from warpsmith import files
from warpsmith.campaign import firewall
from warpsmith.campaign.evidence import stored_evaluations
from warpsmith.campaign.firewall import EarlierRead
from warpsmith.campaign.history import final_race, store
from warpsmith.campaign.history import records as order
from warpsmith.campaign.history.records import StoredRound
from warpsmith.campaign.history.store import Campaign
from warpsmith.core.base import Model
from warpsmith.core.campaign import Closure, RoundRecord
from warpsmith.core.evaluation import Aggregate, Evaluation
from warpsmith.core.evidence import Rerun
from warpsmith.core.race import RaceRecord
from warpsmith.core.text import describe_error
from warpsmith.errors import CorruptRecord, LeftOut
from warpsmith.project import Project
from warpsmith.reporting import facts, pages
from warpsmith.reporting.overview import CampaignRow
from warpsmith.reporting.race import RECORD as RACE
from warpsmith.site.citation import Archive, Citation, Quote
from warpsmith.use import choice
from warpsmith.use.choice import BestVersion

M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class StoredRace:
    """A race on disk."""

    record: RaceRecord
    """The race."""
    citation: Citation
    """Its file."""
    number: str
    """Name of its folder: `002-h200`."""


@dataclass(frozen=True)
class CampaignHistory:
    """A campaign with its sound rounds and everything that was found out about them since."""

    campaign: Campaign
    """The campaign."""
    row: CampaignRow
    """Its row in overviews."""
    stored: Sequence[StoredRound]
    """Closed rounds that read, in order."""
    citations: Mapping[int, Citation]
    """Record of each round by its number."""
    final: Citation | None
    """File of the final race; None if it has none, or one of another version."""
    reruns: Mapping[str, Rerun]
    """Latest rerun by round (`007`) or of the final race (`final`)."""
    closure: Closure | None
    """End before a stop condition."""
    reads: Sequence[EarlierRead]
    """Reads of earlier work that the campaign hides."""
    problems: Sequence[str]
    """Records that do not read, one sentence each."""

    @property
    def name(self) -> str:
        """Name of the campaign."""
        return self.campaign.name

    @property
    def operator(self) -> str:
        """Name of its operator."""
        return self.campaign.manifest.target_op

    @property
    def rounds(self) -> list[RoundRecord]:
        """Records of the sound rounds."""
        return [stored.record for stored in self.stored]

    @property
    def reported(self) -> tuple[Evaluation, Citation, tuple[str, ...]] | None:
        """Evaluation of the best version, its record, and the keys that lead to it there; None without one, and in
        a port campaign, which times nothing."""
        if self.row.manifest.port:
            return None
        evaluation, best = facts.reported_evaluation(self.rounds, self.row.final), self.row.best
        if evaluation is None or best is None:
            return None
        if evaluation is self.row.final and self.final:
            return evaluation, self.final, ()
        return best.evaluation, self.citations[best.round], ("evaluation",)


@dataclass
class Contents:
    """Everything in the records that the pages of a site show."""

    project: Project
    """The project."""
    archive: Archive
    """The records that pages cite."""
    campaigns: list[CampaignHistory] = field(default_factory=list)
    """Every campaign whose manifest reads, by operator and name."""
    races: dict[str, list[StoredRace]] = field(default_factory=dict)
    """Races by operator, in order."""
    best: dict[tuple[str, str], BestVersion] = field(default_factory=dict)
    """Best version by operator and target."""
    problems: list[str] = field(default_factory=list)
    """Files that do not read, one sentence each."""

    @property
    def operators(self) -> list[str]:
        """Names of the operators that have a definition, a campaign or a race."""
        defined = {path.parent.name for path in self.project.kernels.glob("*/definition.py")}
        return sorted({*defined, *self.races, *(history.operator for history in self.campaigns)})

    def histories(self, op: str) -> list[CampaignHistory]:
        """Return the campaigns of one operator."""
        return [history for history in self.campaigns if history.operator == op]

    def cite_race(self, record: RaceRecord | None) -> Citation | None:
        """Return the file of a race."""
        races = self.races.get(record.definition, []) if record else []
        return next((race.citation for race in races if race.record == record), None)

    def quote_mean(self, history: CampaignHistory, mean: Aggregate | None) -> Quote | None:
        """Return a mean of an overview's row with the record that it stands in."""
        if mean is None:
            return None
        race = history.row.race
        for mode, means in (race.aggregates if race else {}).items():
            for index, other in enumerate(means):
                if other is mean and (citation := self.cite_race(race)):
                    return citation.quote(race, "aggregates", mode, index)
        if (reported := history.reported) is None:
            return None
        evaluation, citation, keys = reported
        addresses = [address for address, other in enumerate(evaluation.aggregates) if other == mean]
        pointer = "".join(f"/{key}" for key in (*keys, "aggregates", addresses[0])) if addresses else ""
        return Quote(mean, citation, pointer)

    def note(self, error: Exception | str, path: Path | None = None) -> None:
        """Add a file that does not read."""
        self.problems.append(describe_problem(self.project, error, path))


def read_contents(project: Project) -> Contents:
    """Read the campaigns, races and best versions of a project; one bad file never stops the rest."""
    contents = Contents(project, Archive(project))
    campaigns, errors = store.read_campaigns(project)
    for error in errors.values():
        contents.note(error)
    for campaign in campaigns:
        history = read_history(contents.archive, campaign)
        contents.campaigns.append(history)
        contents.problems += history.problems
    for path in sorted(project.devlog.glob(f"*/races/{files.NUMBERED}-*/{RACE}"), key=files.number_order):
        if record := read_model(contents, path, RaceRecord):
            race = StoredRace(record, contents.archive.cite(path), path.parent.name)
            contents.races.setdefault(record.definition, []).append(race)
    for op in contents.operators:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LeftOut)  # the file that does not read is named already
            versions = choice.best_versions_by_target(project, op)
        contents.best |= {(op, target): version for target, version in versions.items()}
    return contents


def read_model(contents: Contents, path: Path, model: type[M]) -> M | None:
    """Read a JSON file as a model; None, with a note, if it does not read."""
    try:
        return model.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        contents.note(error, path)
        return None


def read_history(archive: Archive, campaign: Campaign) -> CampaignHistory:
    """Read the sound part of a campaign."""
    problems: list[str] = []

    def tolerate(errors: Iterator[Exception]) -> None:
        problems.extend(describe_problem(campaign.project, error) for error in errors)

    stored, faults = campaign.ledger.read_sound()
    tolerate(error for _, error in faults)
    rounds = [entry.record for entry in stored]
    best, final, closure = order.best_round(rounds), None, None
    reruns: Mapping[str, Rerun] = {}
    try:
        final = final_race.read_final_race(campaign, best)
    except CorruptRecord as error:
        tolerate(iter((error,)))
    try:
        closure = campaign.closure()
    except CorruptRecord as error:
        tolerate(iter((error,)))
    if not problems:  # reruns are read along with every record that they renew
        try:
            reruns = stored_evaluations.campaign_renewals(campaign)
        except CorruptRecord as error:
            tolerate(iter((error,)))
    return CampaignHistory(
        campaign=campaign,
        row=CampaignRow(campaign.manifest, rounds, final, pages.last_race(campaign, best)),
        stored=stored,
        citations={entry.number: archive.cite(entry.path) for entry in stored},
        final=archive.cite(final_race.final_race_path(campaign)) if final else None,
        reruns=reruns,
        closure=closure,
        reads=firewall.read_reads(campaign.folder),
        problems=problems,
    )


def describe_problem(project: Project, error: Exception | str, path: Path | None = None) -> str:
    """Return one sentence on a file that does not read, with paths relative to the project."""
    text = describe_error(error) if isinstance(error, ValidationError) else str(error)
    sentence = f"{project.relative(path)} does not read: {text}" if path else text
    return sentence.replace(f"{project.root}/", "")
