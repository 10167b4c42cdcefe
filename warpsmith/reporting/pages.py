"""Rendering: every page of a campaign, and those that it shares with others, brought up to date on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warpsmith import files
from warpsmith.campaign import finale, store
from warpsmith.campaign import records as order
from warpsmith.campaign.store import Campaign
from warpsmith.core.campaign import RoundRecord
from warpsmith.errors import BadEntry, CorruptRecord
from warpsmith.knowledge import index
from warpsmith.project import Project
from warpsmith.reporting import facts, overview, plots, report, summary, tips, trend

REPORT = "report.md"
"""The report, in the campaign's folder."""


def render(campaign: Campaign) -> list[Path]:
    """Write the pages that changed and return them; the same records give the same bytes.

    Raises:
        CorruptRecord: a record of this campaign is corrupt; nothing was written.
        Misuse: the manifest of a campaign of the project does not read; nothing was written.
    """
    pages = {**_own(campaign), **_shared(campaign.project)}
    written = [path for path, content in sorted(pages.items()) if _put(path, content)]
    return written + _knowledge(campaign.project)


def _own(campaign: Campaign) -> dict[Path, str | bytes]:
    rounds = campaign.records()
    final = finale.read(campaign, order.best(rounds))
    folder, manifest = campaign.folder, campaign.manifest
    place = report.Place(
        campaign.project.relative(folder), _entries(campaign.project, rounds), plots_missing=plots.missing()
    )
    pages: dict[Path, str | bytes] = {
        order.folder_of(campaign.rounds, record.round) / "summary.md": summary.page(record) for record in rounds
    }
    pages[folder / "performance_trend.md"] = trend.page(manifest, rounds)
    pages[folder / REPORT] = report.page(manifest, rounds, place, final)
    if not plots.missing():
        pages[folder / "plots" / "trend.svg"] = plots.trend(rounds)
        if evaluation := facts.speaks(rounds, final):
            pages[folder / "plots" / "roofline.svg"] = plots.roofline(evaluation)
    return pages


def _shared(project: Project) -> dict[Path, str | bytes]:
    campaigns = store.all(project)
    rows = [_row(campaign) for campaign in campaigns]
    operators = sorted({row.manifest.target_op for row in rows})
    pages: dict[Path, str | bytes] = {
        project.devlog / op / f"{op}.md": overview.operator_page(op, rows) for op in operators
    }
    pages[project.devlog / "README.md"] = overview.devlog_page(rows)
    kept = [
        (record, project.relative(order.folder_of(campaign.rounds, record.round) / order.RECORD))
        for campaign, row in zip(campaigns, rows, strict=True)
        for record in row.rounds
    ]
    told = tips.told(kept, project.relative(project.knowledge))
    for subject in {row.subject for row in told}:
        pages[project.knowledge / subject.path] = tips.page(subject, told)
    return pages


def _knowledge(project: Project) -> list[Path]:
    """The knowledge's own pages, which list tips and measurements too."""
    try:
        stale = index.stale(project)
        if stale:
            index.refresh(project)
    except BadEntry:
        return []  # `warpsmith knowledge check` names it; a campaign's pages do not rest on it
    return stale


def _row(campaign: Campaign) -> overview.Row:
    # A corrupt record elsewhere must not keep this campaign's pages from being written.
    try:
        rounds = campaign.records()
        return overview.Row(campaign.manifest, rounds, finale.read(campaign, order.best(rounds)))
    except CorruptRecord:
        return overview.Row(campaign.manifest, (), unreadable=True)


def _entries(project: Project, rounds: Sequence[RoundRecord]) -> dict[str, str]:
    wanted = {record.lesson.entry for record in rounds if record.lesson.entry}
    there = sorted(project.knowledge.rglob("*.md")) if wanted else []
    return {path.stem: project.relative(path) for path in there if path.stem in wanted}


def _put(path: Path, content: str | bytes) -> bool:
    data = content.encode() if isinstance(content, str) else content
    if path.is_file() and path.read_bytes() == data:
        return False
    files.write(path, data)
    return True
