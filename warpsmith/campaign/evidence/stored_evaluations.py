"""Evaluations on disk: rounds, final races and single verdicts, their reruns, and changes since each of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from warpsmith import files
from warpsmith.campaign.history import closing, final_race, records, solutions, store
from warpsmith.campaign.history.records import StoredRound
from warpsmith.campaign.history.store import MANIFEST, Campaign
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.evidence import Claim, Rerun, Stale
from warpsmith.core.text import describe_error
from warpsmith.errors import CorruptRecord, MissingInput, Misuse
from warpsmith.lab.operator import definition_file
from warpsmith.ledger.store import RECORD, corrupt_file
from warpsmith.project import Project

RERUNS = "reruns"
"""Folder of the reruns of a campaign's records."""

VERDICTS = ".warpsmith/verdicts"
"""Folder of the verdicts that belong to no campaign, below the project's root."""


@dataclass(frozen=True)
class StoredEvaluation:
    """One evaluation on disk: of a round, of a final race, or of a verdict outside of campaigns."""

    path: Path
    """File that holds it."""
    sha256: str
    """Hash of the file."""
    evaluation: Evaluation
    """The evaluation itself."""
    campaign: Campaign | None = None
    """Campaign that it belongs to; None for a verdict outside of campaigns."""
    stored_round: StoredRound | None = None
    """Round that it belongs to; None for a race or a verdict."""

    @property
    def stem(self) -> str:
        """Stem of the names of its reruns: `007`, `final`, or the name of a verdict's file."""
        return self.stored_round.folder.name if self.stored_round else self.path.stem

    @property
    def reruns(self) -> Path:
        """Folder of its reruns."""
        return (self.campaign.folder if self.campaign else self.path.parent) / RERUNS


def find_evaluation(project: Project, path: Path) -> StoredEvaluation:
    """Find the evaluation that a path names: a round's folder or record, a final race, or a verdict's file.

    Raises:
        MissingInput: there is no such file.
        CorruptRecord: a record of its campaign is torn or was edited.
        Misuse: it is no evaluation.
    """
    path = path.resolve()
    path = path / RECORD if path.is_dir() else path
    shown_path = project.relative(path)
    if not path.is_file():
        raise MissingInput(
            f"{shown_path} does not exist; name a round's folder, its record.json, or a verdict's file."
        )
    if not path.is_relative_to(project.devlog):
        evaluation = _verdict(path)
        if isinstance(evaluation, Evaluation):
            return StoredEvaluation(path, files.file_sha256(path), evaluation)
        raise Misuse(f"{shown_path} is no verdict ({evaluation}); name a round's folder or a verdict's file.")
    owner = next((folder for folder in path.parents if (folder / MANIFEST).is_file()), None)
    for judged in _of_campaign(store.read_campaign(project, owner)) if owner else ():
        if judged.path == path:
            return judged
    raise Misuse(f"{shown_path} is no closed round and no race of a best version; name a round's folder.")


def list_evaluations(project: Project) -> tuple[list[StoredEvaluation], list[Stale]]:
    """List every evaluation that reads, and a finding for each record and manifest that does not."""
    judged, stale = list_verdicts(project)
    campaigns, errors = store.read_campaigns(project)
    stale += [corrupt_finding(project, path, error) for path, error in errors.items()]
    for campaign in reversed(campaigns):
        sound, corrupt = read_evaluations(campaign)
        judged, stale = sound + judged, corrupt + stale
    return judged, stale


def list_verdicts(project: Project) -> tuple[list[StoredEvaluation], list[Stale]]:
    """List the last verdict on each version outside of campaigns, and a finding for each that does not read."""
    judged, stale = [], []
    for verdict, path in _verdicts(project):
        if isinstance(verdict, Evaluation):
            judged.append(StoredEvaluation(path, files.file_sha256(path), verdict))
        else:
            shown_path = project.relative(path)
            stale.append(Stale(path=shown_path, message=f"{shown_path} does not validate: {verdict}; remove it."))
    return judged, stale


def list_changes(project: Project, judged: StoredEvaluation) -> list[str]:
    """List the changes of the judged files since the evaluation, one sentence each."""
    evaluation, shown_path = judged.evaluation, project.relative(judged.path)
    version = f"{evaluation.language}/{evaluation.version}"
    solution = solutions.find_solution(project, evaluation.definition, version).path
    changes = []
    if not records.has_content(solution, evaluation.provenance.solution_sha256):
        changes.append(f"{shown_path} is stale: {_describe_solution_change(project, solution, judged)}.")
    definition = project.definition_path(evaluation.definition)
    same = definition_file.definition_sha256(definition) == evaluation.provenance.definition_sha256
    if not same and not closing.is_amended(judged.path):
        name = project.relative(definition)
        change = "or a Python file next to it has changed" if definition.is_file() else "is gone"
        changes.append(
            f"{shown_path} is stale: {name} {change} since it was judged; put it back, or mend it for good"
            " with `warpsmith amend`."
        )
    return changes


def read_reruns(judged: StoredEvaluation) -> list[tuple[int, Rerun]]:
    """Read the reruns of an evaluation with their numbers, in order.

    Raises:
        CorruptRecord: one does not read, or belongs to another record.
    """
    numbered = []
    for path in judged.reruns.glob(f"{judged.stem}-*.json"):
        if not (match := re.fullmatch(rf"{re.escape(judged.stem)}-(\d+)", path.stem)):
            continue
        try:
            rerun = Rerun.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise corrupt_file(path, f"does not validate: {describe_error(error)}", f"rm {path}") from error
        if rerun.record_sha256 != judged.sha256:
            raise corrupt_file(path, f"belongs to another record than {judged.path} is now", f"rm {path}")
        numbered.append((int(match[1]), rerun))
    return sorted(numbered, key=lambda pair: pair[0])


def last_renewal(judged: StoredEvaluation) -> Rerun | None:
    """Last rerun of an evaluation that came to a claim; raises CorruptRecord."""
    claims = [rerun for _, rerun in read_reruns(judged) if rerun.claim is not Claim.UNKNOWN]
    return claims[-1] if claims else None


def campaign_renewals(campaign: Campaign) -> dict[str, Rerun]:
    """Last claims of reruns of a campaign's rounds and final race, by stem; raises CorruptRecord."""
    if not (campaign.folder / RERUNS).is_dir():
        return {}
    stems = {path.stem.rpartition("-")[0] for path in (campaign.folder / RERUNS).glob("*-*.json")}
    rounds = [
        _of_round(campaign, campaign.ledger.read(number))
        for number in campaign.ledger.numbers()
        if campaign.ledger.folder_of(number).name in stems
    ]
    raced = final_race.final_race_path(campaign).stem in stems
    judged = [*rounds, *(_of_final_race(campaign, campaign.closed_rounds()) if raced else ())]
    return {stored.stem: rerun for stored in judged if (rerun := last_renewal(stored))}


def corrupt_finding(project: Project, path: Path, error: CorruptRecord) -> Stale:
    """Finding about a file that does not read."""
    return Stale(path=project.relative(path), message=str(error).replace(f"{project.root}/", ""))


def _of_campaign(campaign: Campaign) -> Iterator[StoredEvaluation]:
    rounds = campaign.closed_rounds()
    yield from (_of_round(campaign, stored) for stored in rounds)
    yield from _of_final_race(campaign, rounds)


def _of_round(campaign: Campaign, stored: StoredRound) -> StoredEvaluation:
    return StoredEvaluation(stored.path, stored.sha256, stored.record.evaluation, campaign, stored)


def _of_final_race(campaign: Campaign, rounds: list[StoredRound]) -> Iterator[StoredEvaluation]:
    path = final_race.final_race_path(campaign)
    race = final_race.read_final_race(campaign, records.best_round(stored.record for stored in rounds))
    if race is not None:
        yield StoredEvaluation(path, files.file_sha256(path), race, campaign)


def read_evaluations(campaign: Campaign) -> tuple[list[StoredEvaluation], list[Stale]]:
    """Read the evaluations of a campaign that are sound, and a finding for each that is not.

    Each round is read on its own: `Campaign.closed_rounds` stops at the first one that is corrupt.
    """
    project = campaign.project
    rounds, errors = campaign.ledger.read_sound()
    stale = [corrupt_finding(project, path, error) for path, error in errors]
    judged = [_of_round(campaign, stored) for stored in rounds]
    try:
        judged += _of_final_race(campaign, rounds)
    except CorruptRecord as error:
        stale.append(corrupt_finding(project, final_race.final_race_path(campaign), error))
    return judged, stale


def _describe_solution_change(project: Project, solution: Path, judged: StoredEvaluation) -> str:
    change = "has changed" if solution.is_file() else "is gone"
    action = "put it back" if judged.campaign else "put it back, or remove the verdict"
    if judged.stored_round:
        snapshot = judged.stored_round.folder / judged.stored_round.record.snapshot
        if snapshot.exists():
            action = f"put {project.relative(snapshot)} back in its place"
    return f"{project.relative(solution)} {change} since it was judged; {action}"


def _verdicts(project: Project) -> Iterator[tuple[Evaluation | str, Path]]:
    """Yield the last verdict on each version outside of campaigns, and every file that does not read."""
    latest: dict[tuple[str, ...], tuple[Evaluation | str, Path]] = {}
    paths = (project.root / VERDICTS).glob("*.json")
    for path in sorted(paths, key=lambda path: path.stat().st_mtime_ns):
        verdict = _verdict(path)
        key: tuple[str, ...] = (str(path),)
        if isinstance(verdict, Evaluation):
            key = (verdict.definition, verdict.language, verdict.version, verdict.target)
        latest[key] = (verdict, path)
    yield from latest.values()


def _verdict(path: Path) -> Evaluation | str:
    """Read the verdict in a file, or say what is wrong with it."""
    try:
        return Evaluation.model_validate_json(path.read_bytes())
    except ValidationError as error:
        return describe_error(error)
