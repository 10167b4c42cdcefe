"""Page of a repository campaign: its result, round by round, rendered from its records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warpsmith import files
from warpsmith.core.base import Model
from warpsmith.core.repo import RepoEvaluation, RepoManifest, RepoRecord
from warpsmith.knowledge import index
from warpsmith.repo.store import RepoCampaign
from warpsmith.repo.transfer.description import transfer_lines
from warpsmith.reporting.templating import fill_template

REPORT = "report.md"
"""File name of the page in the campaign's folder."""


class RepoContents(Model):
    """Data that the page is rendered from."""

    manifest: RepoManifest
    """Manifest of the campaign."""
    records: tuple[RepoRecord, ...]
    """Closed rounds in order."""
    final: RepoEvaluation | None
    """Comparison of the best commit with the starting commit; null if it was not judged."""


def repo_contents(campaign: RepoCampaign) -> RepoContents:
    """Read the data that the page is rendered from; raise CorruptRecord."""
    records = tuple(closed.record for closed in campaign.closed_rounds())
    return RepoContents(manifest=campaign.manifest, records=records, final=campaign.final())


def write_repo_page(campaign: RepoCampaign) -> Path:
    """Write the page and the knowledge index if they changed; the same records give the same bytes."""
    text, path = repo_page(repo_contents(campaign)), campaign.folder / REPORT
    if not path.is_file() or path.read_text() != text:
        files.write_file(path, text)
    index.update_pages(campaign.project)
    return path


def repo_page(contents: RepoContents) -> str:
    """Render `report.md` of a repository campaign."""
    accepted = [record for record in contents.records if record.commit]
    final = (
        contents.final if contents.final and accepted and contents.final.commit == accepted[-1].commit else None
    )
    return fill_template(
        "repo",
        manifest=contents.manifest,
        contract=contents.manifest.contract,
        records=contents.records,
        accepted=accepted,
        baseline=contents.records[0].baseline if contents.records else None,
        final=final,
        compounded=_compounded(accepted[1:]),
        transfer_lines=transfer_lines,
    )


def _compounded(accepted: Sequence[RepoRecord]) -> float | None:
    total = 1.0
    for record in accepted:
        if record.judgement.aggregate is None:
            return None
        total *= record.judgement.aggregate.speedup
    return total - 1 if accepted else None
