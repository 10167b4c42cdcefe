"""Judgements on disk: records, races and verdicts, what was judged again, and what has changed since each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from warpsmith import files
from warpsmith.campaign.history import finale, records, solutions, store
from warpsmith.campaign.history.records import Kept
from warpsmith.campaign.history.store import MANIFEST, Campaign
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.evidence import Claim, Rerun, Stale
from warpsmith.core.problem import problem
from warpsmith.errors import CorruptRecord, MissingInput, Misuse
from warpsmith.lab.operator import definition_file
from warpsmith.project import Project

RERUNS = "reruns"
"""The folder of what judging a campaign's records again said."""

VERDICTS = ".warpsmith/verdicts"
"""Where `warpsmith judge` keeps verdicts that belong to no campaign."""


@dataclass(frozen=True)
class Judged:
    """One judgement on disk: a round's record, a final race, or a verdict outside of campaigns."""

    path: Path
    """Its file."""
    sha256: str
    """Hash of the file."""
    evaluation: Evaluation
    """The judgement."""
    campaign: Campaign | None = None
    """Whose; None: nobody's."""
    kept: Kept | None = None
    """The round; None: a race or a verdict."""

    @property
    def stem(self) -> str:
        """What its reruns are named by: `007`, `final`, or a verdict's own name."""
        return self.kept.folder.name if self.kept else self.path.stem

    @property
    def reruns(self) -> Path:
        """The folder of its reruns."""
        return (self.campaign.folder if self.campaign else self.path.parent) / RERUNS


def find(project: Project, path: Path) -> Judged:
    """The judgement that a path names: a round's folder or record, a final race, or a verdict's file.

    Raises:
        MissingInput: there is no such file.
        CorruptRecord: a record of its campaign is torn or was edited.
        Misuse: it is no judgement.
    """
    path = path.resolve()
    path = path / records.RECORD if path.is_dir() else path
    shown = project.relative(path)
    if not path.is_file():
        raise MissingInput(f"{shown} does not exist; name a round's folder, its record.json, or a verdict's file.")
    if not path.is_relative_to(project.devlog):
        evaluation = _verdict(path)
        if isinstance(evaluation, Evaluation):
            return Judged(path, files.sha256(path), evaluation)
        raise Misuse(f"{shown} is no verdict ({evaluation}); name a round's folder or a verdict's file.")
    owner = next((folder for folder in path.parents if (folder / MANIFEST).is_file()), None)
    for judged in _of_campaign(store.read(project, owner)) if owner else ():
        if judged.path == path:
            return judged
    raise Misuse(f"{shown} is no closed round and no race of a best version; name a round's folder.")


def every(project: Project) -> tuple[list[Judged], list[Stale]]:
    """Every judgement that reads, and one finding for each that does not; raises Misuse on a bad manifest."""
    judged, stale = [], []
    for campaign in store.all(project):
        sound, broken = _sound(campaign)
        judged += sound
        stale += broken
    for verdict, path in _verdicts(project):
        if isinstance(verdict, Evaluation):
            judged.append(Judged(path, files.sha256(path), verdict))
        else:
            shown = project.relative(path)
            stale.append(Stale(path=shown, message=f"{shown} does not validate: {verdict}; remove it."))
    return judged, stale


def changes(project: Project, judged: Judged) -> list[str]:
    """What differs between the files that were judged and those of today, one sentence each."""
    evaluation, shown = judged.evaluation, project.relative(judged.path)
    version = f"{evaluation.language}/{evaluation.version}"
    solution = solutions.at(project, evaluation.definition, version).path
    found = []
    if not records.sound_snapshot(solution, evaluation.provenance.solution_sha256):
        found.append(f"{shown} is stale: {_solution_changed(project, solution, judged)}.")
    definition = project.definition(evaluation.definition)
    if definition_file.digest(definition) != evaluation.provenance.definition_sha256:
        name = project.relative(definition)
        what = "or a Python file beside it has changed" if definition.is_file() else "is gone"
        found.append(
            f"{shown} is stale: {name} {what} since it was judged; put it back, or judge the version again in a"
            " new campaign."
        )
    return found


def reruns(judged: Judged) -> list[tuple[int, Rerun]]:
    """The reruns of a judgement with their numbers, in order.

    Raises:
        CorruptRecord: one does not read, or is of another record.
    """
    found = []
    for path in judged.reruns.glob(f"{judged.stem}-*.json"):
        if not (match := re.fullmatch(rf"{re.escape(judged.stem)}-(\d+)", path.stem)):
            continue
        try:
            rerun = Rerun.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise CorruptRecord(f"{path} does not validate: {problem(error)}; remove it.") from error
        if rerun.record_sha256 != judged.sha256:
            raise CorruptRecord(f"{path} is of another record than {judged.path} is now; remove it.")
        found.append((int(match[1]), rerun))
    return sorted(found, key=lambda numbered: numbered[0])


def renewal(judged: Judged) -> Rerun | None:
    """The last rerun of a judgement that could say something; raises CorruptRecord."""
    said = [rerun for _, rerun in reruns(judged) if rerun.claim is not Claim.UNKNOWN]
    return said[-1] if said else None


def renewals(campaign: Campaign) -> dict[str, Rerun]:
    """Such reruns of a campaign's rounds and race, each by its judgement's stem; raises CorruptRecord."""
    if not (campaign.folder / RERUNS).is_dir():
        return {}
    return {judged.stem: rerun for judged in _of_campaign(campaign) if (rerun := renewal(judged))}


def broken(project: Project, path: Path, error: CorruptRecord) -> Stale:
    """The finding about a file that does not read."""
    return Stale(path=project.relative(path), message=str(error).replace(f"{project.root}/", ""))


def _of_campaign(campaign: Campaign) -> Iterator[Judged]:
    kept = campaign.kept()
    yield from (_round(campaign, one) for one in kept)
    yield from _race(campaign, kept)


def _round(campaign: Campaign, kept: Kept) -> Judged:
    return Judged(kept.folder / records.RECORD, kept.sha256, kept.record.evaluation, campaign, kept)


def _race(campaign: Campaign, kept: list[Kept]) -> Iterator[Judged]:
    path = finale.path(campaign)
    race = finale.read(campaign, records.best(one.record for one in kept))
    if race is not None:
        yield Judged(path, files.sha256(path), race, campaign)


def _sound(campaign: Campaign) -> tuple[list[Judged], list[Stale]]:
    """What reads, round by round: `Campaign.kept` stops at the first that does not."""
    project, kept, stale = campaign.project, [], []
    for number in records.numbers(campaign.rounds):
        try:
            kept.append(records.read(campaign.rounds, number, campaign.name))
        except CorruptRecord as error:
            stale.append(broken(project, records.folder_of(campaign.rounds, number) / records.RECORD, error))
    for number in records.missing(campaign.rounds):
        folder = records.folder_of(campaign.rounds, number)
        gone = records.corrupt(folder, "is missing", campaign.name)
        stale.append(broken(project, folder / records.RECORD, gone))
    for one in records.unlinked(kept):
        path = one.folder / records.RECORD
        edited = records.corrupt(path, "is not the record that the next one follows", campaign.name)
        stale.append(broken(project, path, edited))
    judged = [_round(campaign, one) for one in kept]
    try:
        judged += _race(campaign, kept)
    except CorruptRecord as error:
        stale.append(broken(project, finale.path(campaign), error))
    return judged, stale


def _solution_changed(project: Project, solution: Path, judged: Judged) -> str:
    what = "has changed" if solution.is_file() else "is gone"
    mend = "put it back" if judged.campaign else "put it back, or remove the verdict"
    if judged.kept:
        mend = f"put {project.relative(judged.kept.folder / judged.kept.record.snapshot)} back in its place"
    return f"{project.relative(solution)} {what} since it was judged; {mend}"


def _verdicts(project: Project) -> Iterator[tuple[Evaluation | str, Path]]:
    """Verdicts outside of campaigns; one that a later verdict on the same version replaced is no evidence."""
    last: dict[tuple[str, ...], tuple[Evaluation | str, Path]] = {}
    paths = (project.root / VERDICTS).glob("*.json")
    for path in sorted(paths, key=lambda path: path.stat().st_mtime_ns):
        found = _verdict(path)
        of: tuple[str, ...] = (str(path),)
        if isinstance(found, Evaluation):
            of = (found.definition, found.language, found.version, found.target)
        last[of] = (found, path)
    yield from last.values()


def _verdict(path: Path) -> Evaluation | str:
    """The verdict in a file, or what is wrong with it."""
    try:
        return Evaluation.model_validate_json(path.read_bytes())
    except ValidationError as error:
        return problem(error)
