"""Rendering: every page of a campaign, and those that it shares with others, brought up to date on disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from warpsmith import files
from warpsmith.campaign.evidence import judgements
from warpsmith.campaign.history import finale, store
from warpsmith.campaign.history import records as order
from warpsmith.campaign.history.store import Campaign
from warpsmith.core.campaign import RoundRecord
from warpsmith.core.race import RaceRecord
from warpsmith.errors import CorruptRecord, Misuse
from warpsmith.knowledge import index
from warpsmith.project import Project
from warpsmith.reporting import calibration, facts, overview, plots, race, report, summary, tips, trend
from warpsmith.use import choice

REPORT = "report.md"
"""The report, in the campaign's folder."""

TREND_PLOT = "plots/trend.svg"
"""The plot that a report shows where plots were drawn."""


def render(campaign: Campaign) -> list[Path]:
    """Write the pages of a campaign that changed and return them; the same records give the same bytes. Plots of
    races stay where they are there.

    Raises:
        CorruptRecord: a record of this campaign is corrupt; nothing was written.
        Misuse: the manifest of a campaign of the project does not read; nothing was written.
    """
    return _render(campaign.project, campaign)


def render_all(project: Project) -> list[Path]:
    """The same for every campaign of a project, whose records are read together; all plots are drawn.

    Raises:
        CorruptRecord: a record is corrupt; nothing was written.
        Misuse: a manifest does not read; nothing was written.
    """
    return _render(project)


def _render(project: Project, only: Campaign | None = None) -> list[Path]:
    campaigns = store.all(project)
    chosen = [campaign for campaign in campaigns if only is None or campaign.folder == only.folder]
    rows = [_read(campaign) if campaign in chosen else _row(campaign) for campaign in campaigns]
    pages = _shared(project, campaigns, rows)
    for campaign, row in zip(campaigns, rows, strict=True):
        if campaign in chosen:
            pages |= {**_own(campaign, row, plots.missing()), **_plots(campaign, row)}
    for op in {campaign.manifest.target_op for campaign in chosen}:
        pages |= race.render(project, op, _struck(rows, op), redraw=only is None)
    written = [path for path, content in sorted(pages.items()) if _put(path, content)]
    return written + index.renew(project)


def every(project: Project) -> dict[Path, str]:
    """Every page under the devlog as its records give it now; none of a campaign whose records do not read.

    Plots are not drawn: a report says of them what it says on disk where it could not be drawn here.

    Raises:
        Misuse: the manifest of a campaign does not read.
    """
    campaigns = store.all(project)
    rows = [_row(campaign) for campaign in campaigns]
    predictions = project.devlog / calibration.NAME
    pages = _overviews(project, rows, "" if _shows(predictions, calibration.PLOT) else plots.missing())
    for campaign, row in zip(campaigns, rows, strict=True):
        if not row.unreadable:
            with suppress(CorruptRecord):  # a rerun may be torn
                drawn = _shows(campaign.folder / REPORT, TREND_PLOT)
                pages |= _own(campaign, row, "" if drawn else plots.missing())
    return pages


def _own(campaign: Campaign, row: overview.Row, plots_missing: str) -> dict[Path, str]:
    """A campaign's own pages; raises CorruptRecord."""
    project, folder, rounds = campaign.project, campaign.folder, row.rounds
    again = judgements.renewals(campaign)
    place = report.Place(project.relative(folder), _entries(project, rounds), plots_missing=plots_missing)
    folders = {record.round: order.folder_of(campaign.rounds, record.round) for record in rounds}
    pages = {
        folders[record.round] / "summary.md": summary.page(record, again.get(folders[record.round].name))
        for record in rounds
    }
    pages[folder / "performance_trend.md"] = trend.page(row.manifest, rounds)
    pages[folder / REPORT] = report.page(row.manifest, rounds, place, row.final, again)
    return pages


def _plots(campaign: Campaign, row: overview.Row) -> dict[Path, bytes]:
    """A campaign's own plots; none where they cannot be drawn here."""
    if plots.missing():
        return {}
    drawn = {campaign.folder / TREND_PLOT: plots.trend(row.rounds)}
    if evaluation := facts.speaks(row.rounds, row.final):
        drawn[campaign.folder / "plots" / "roofline.svg"] = plots.roofline(evaluation)
    return drawn


def _shows(path: Path, plot: str) -> bool:
    """Whether a page on disk shows a plot."""
    return path.is_file() and plot in path.read_text(errors="replace")


def _shared(
    project: Project, campaigns: Sequence[Campaign], rows: Sequence[overview.Row]
) -> dict[Path, str | bytes]:
    """The overviews with their plot, and the pages of tips."""
    pages: dict[Path, str | bytes] = {**_overviews(project, rows, plots.missing())}
    predictions = calibration.over(row.rounds for row in rows)
    if predictions.predictions and not plots.missing():
        pages[project.devlog / calibration.PLOT] = plots.calibration(predictions)
    kept = [
        (record, project.relative(order.folder_of(campaign.rounds, record.round) / order.RECORD))
        for campaign, row in zip(campaigns, rows, strict=True)
        for record in row.rounds
    ]
    told = tips.told(kept, project.relative(project.knowledge))
    for subject in {row.subject for row in told}:
        pages[project.knowledge / subject.path] = tips.page(subject, told)
    return pages


def _overviews(project: Project, rows: Sequence[overview.Row], plots_missing: str) -> dict[Path, str]:
    operators = sorted({row.manifest.target_op for row in rows})
    pages = {project.devlog / op / f"{op}.md": overview.operator_page(op, rows) for op in operators}
    pages[project.devlog / "README.md"] = overview.devlog_page(rows, _standing(project, operators))
    predictions = calibration.over(row.rounds for row in rows)
    pages[project.devlog / calibration.NAME] = calibration.page(predictions, plots_missing)
    return pages


def _standing(project: Project, operators: Iterable[str]) -> dict[tuple[str, str], str]:
    """By operator and target the hash of the best version, as far as records read."""
    found: dict[tuple[str, str], str] = {}
    for op in operators:
        with suppress(CorruptRecord, Misuse):
            found |= {(op, target): best.sha256 for target, best in choice.every(project, op).items()}
    return found


def _struck(rows: Iterable[overview.Row], op: str) -> dict[str, str]:
    """By the hash of a version of an operator why a review took it out of the lineage."""
    records = (record for row in rows if row.manifest.target_op == op for record in row.rounds)
    return {record.snapshot_sha256: record.struck.reason for record in records if record.struck}


def _row(campaign: Campaign) -> overview.Row:
    # A corrupt record elsewhere must not keep this campaign's pages from being written.
    try:
        return _read(campaign)
    except CorruptRecord:
        return overview.Row(campaign.manifest, (), unreadable=True)


def _read(campaign: Campaign) -> overview.Row:
    rounds = campaign.records()
    best = order.best(rounds)
    return overview.Row(campaign.manifest, rounds, finale.read(campaign, best), _race(campaign, best))


def _race(campaign: Campaign, best: RoundRecord | None) -> RaceRecord | None:
    """The last race on the target that reads: of the best version where there is one, else of another."""
    races = campaign.folder.parent / "races"
    found = []
    for path in sorted(races.glob(f"[0-9][0-9][0-9]-{campaign.manifest.target}/{race.RECORD}"), reverse=True):
        with suppress(ValidationError):
            found.append(RaceRecord.model_validate_json(path.read_bytes()))
    mine = [one for one in found if best and one.provenance.solution_sha256 == best.snapshot_sha256]
    return next(iter(mine or found), None)


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
