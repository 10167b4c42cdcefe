"""The page of a repo campaign: what it reached, round by round, rendered from its records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warpsmith import files
from warpsmith.core.base import Model
from warpsmith.core.repo import RepoJudgement, RepoManifest, RepoRecord
from warpsmith.knowledge import index
from warpsmith.repo.store import RepoCampaign
from warpsmith.reporting.templating import fill

REPORT = "report.md"
"""The page, in the campaign's folder."""


class RepoContents(Model):
    """What the page is rendered from."""

    manifest: RepoManifest
    """What the campaign is about."""
    records: tuple[RepoRecord, ...]
    """Its closed rounds in order."""
    final: RepoJudgement | None
    """The best commit against the one that all began at; null where it was not judged."""


def contents(campaign: RepoCampaign) -> RepoContents:
    """What the page is rendered from; raises CorruptRecord."""
    records = tuple(kept.record for kept in campaign.kept())
    return RepoContents(manifest=campaign.manifest, records=records, final=campaign.final())


def render(campaign: RepoCampaign) -> Path:
    """Write the page, and the knowledge's index, where they changed; the same records give the same bytes."""
    text, path = page(contents(campaign)), campaign.folder / REPORT
    if not path.is_file() or path.read_text() != text:
        files.write(path, text)
    index.renew(campaign.project)
    return path


def page(found: RepoContents) -> str:
    """`report.md`."""
    accepted = [record for record in found.records if record.commit]
    final = found.final if found.final and accepted and found.final.commit == accepted[-1].commit else None
    return fill(
        "repo",
        manifest=found.manifest,
        contract=found.manifest.contract,
        records=found.records,
        accepted=accepted,
        baseline=found.records[0].baseline if found.records else None,
        final=final,
        compounded=_compounded(accepted[1:]),
    )


def _compounded(accepted: Sequence[RepoRecord]) -> float | None:
    total = 1.0
    for record in accepted:
        if record.judgement.aggregate is None:
            return None
        total *= record.judgement.aggregate.speedup
    return total - 1 if accepted else None
