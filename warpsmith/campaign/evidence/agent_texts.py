"""Texts by agents in closed rounds: figures that no record supports, and words against the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from warpsmith import files
from warpsmith.campaign import texts
from warpsmith.campaign.evidence.stored_evaluations import StoredEvaluation
from warpsmith.campaign.history.store import Campaign
from warpsmith.core.campaign import RECORD_VERSION, RoundRecord
from warpsmith.core.claims.quantities import Quantities
from warpsmith.core.evidence import Stale, UnsupportedText
from warpsmith.core.repo import REPO_RECORD_VERSION, RepoRecord
from warpsmith.project import Project

_REPO_ROUNDS = f"repo/*/rounds/{files.NUMBERED}/record.json"


def check_campaign_texts(
    project: Project, campaign: Campaign, judged: Sequence[StoredEvaluation], cited: set[str]
) -> Iterator[Stale | UnsupportedText]:
    """Check the texts of a campaign's closed rounds: `Stale` for a record that the rule held for, else
    `UnsupportedText`.

    A text may state what an earlier round of its campaign measured. The files that texts cite are added to
    `cited`.
    """
    recorded = texts.quantities_of(campaign.manifest)
    for stored in judged:
        if stored.stored_round:
            record = stored.stored_round.record
            recorded = recorded.union(texts.quantities_of(record))
            accepted = record.evaluation.decision.verdict.accepted
            yield from _faults(project, stored.path, record, recorded, accepted, RECORD_VERSION, cited)


def check_repo_texts(project: Project) -> Iterator[Stale | UnsupportedText]:
    """Check the texts of all closed rounds in repositories of their own, as `check_campaign_texts`."""
    earlier: dict[Path, Quantities] = {}
    for path in sorted(project.devlog.glob(_REPO_ROUNDS), key=files.number_order):
        try:
            change = RepoRecord.model_validate_json(path.read_bytes())
        except ValidationError:
            continue  # the campaign's own commands report it
        folder = path.parent.parent
        recorded = texts.quantities_of(change)
        recorded = earlier[folder] = earlier[folder].union(recorded) if folder in earlier else recorded
        yield from _faults(project, path, change, recorded, change.verdict.accepted, REPO_RECORD_VERSION, set())


def _faults(
    project: Project,
    path: Path,
    record: RoundRecord | RepoRecord,
    recorded: Quantities,
    accepted: bool,
    checked_from: int,
    cited: set[str],
) -> Iterator[Stale | UnsupportedText]:
    shown_path = project.relative(path)
    for fault in texts.text_faults(project, texts.record_texts(record), recorded, accepted, cited):
        message = f"{shown_path}: {fault}"
        if record.record_version >= checked_from:
            yield Stale(path=shown_path, message=message)
        else:
            yield UnsupportedText(record=shown_path, message=message)
