"""Rendering of pages: those of a campaign, and those that several campaigns share."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from warpsmith import files
from warpsmith.campaign import firewall
from warpsmith.campaign.evidence import stored_evaluations
from warpsmith.campaign.history import final_race, store
from warpsmith.campaign.history import records as order
from warpsmith.campaign.history.store import Campaign
from warpsmith.core.campaign import RoundRecord
from warpsmith.core.race import RaceRecord
from warpsmith.errors import CorruptRecord, LeftOut
from warpsmith.knowledge import index
from warpsmith.ledger.store import RECORD
from warpsmith.project import Project
from warpsmith.reporting import calibration, facts, overview, plots, race, report, tips
from warpsmith.reporting.performance_map import page as map_pages
from warpsmith.reporting.port import page as port_pages
from warpsmith.use import choice

REPORT = "report.md"
"""File name of the report in the campaign's folder."""


def render_campaign(campaign: Campaign) -> list[Path]:
    """Write the pages of a campaign that changed, and return them; the same records give the same bytes.

    Existing plots of races are not redrawn.

    Raises:
        CorruptRecord: a record of this campaign is corrupt; nothing was written.
    """
    return _render(campaign.project, campaign)


def render_all(project: Project) -> list[Path]:
    """Write the changed pages of every campaign of a project, and draw all plots.

    Raises:
        CorruptRecord: a record is corrupt; nothing was written.
    """
    return _render(project)


def _render(project: Project, only: Campaign | None = None) -> list[Path]:
    campaigns = store.list_campaigns(project)
    selected = [campaign for campaign in campaigns if only is None or campaign.folder == only.folder]
    rows = [_read_row(campaign) if campaign in selected else _row(campaign) for campaign in campaigns]
    pages = _shared_pages(project, campaigns, rows)
    for campaign, row in zip(campaigns, rows, strict=True):
        if campaign in selected:
            pages |= {
                **_campaign_pages(campaign, row),
                **_campaign_plots(campaign, row),
            }
    for op in {campaign.manifest.target_op for campaign in selected}:
        pages |= race.render_races(project, op, _struck_reasons(rows, op), redraw=only is None)
        pages |= map_pages.render_maps(project, op, redraw=only is None)
        pages |= port_pages.render_ports(project, op)
    written = [path for path, content in sorted(pages.items()) if _write_if_changed(path, content)]
    return written + index.update_pages(project)


def expected_pages(project: Project) -> dict[Path, str]:
    """Return every page under the devlog as the records give it now, except for campaigns with corrupt records.

    Plots are not drawn. A calibration page that shows no plot on disk keeps the reason for that. Where a manifest
    does not read, the pages about all campaigns are left out.
    """
    campaigns, errors = store.read_campaigns(project)
    rows = [_row(campaign) for campaign in campaigns]
    predictions = project.devlog / calibration.NAME
    missing_plot = "" if _shows_plot(predictions, calibration.PLOT) else plots.plots_unavailable()
    pages = {} if errors else _overviews(project, rows, missing_plot)
    for campaign, row in zip(campaigns, rows, strict=True):
        if not row.unreadable:
            with suppress(CorruptRecord):  # a rerun may be incomplete
                pages |= _campaign_pages(campaign, row)
    return pages


def _campaign_pages(campaign: Campaign, row: overview.CampaignRow) -> dict[Path, str]:
    """Return a campaign's own pages; raise CorruptRecord."""
    project, folder, rounds = campaign.project, campaign.folder, row.rounds
    reruns = stored_evaluations.campaign_renewals(campaign)
    links = report.ReportLinks(project.relative(folder), entry_files(project, rounds))
    folders = {record.round: campaign.ledger.folder_of(record.round) for record in rounds}
    pages = {
        folders[record.round] / "summary.md": report.round_page(record, reruns.get(folders[record.round].name))
        for record in rounds
    }
    pages[folder / "performance_trend.md"] = report.trend_page(row.manifest, rounds)
    pages[folder / REPORT] = report.report_page(
        row.manifest, rounds, links, row.final, reruns, campaign.closure(), firewall.read_reads(folder)
    )
    return pages


def _campaign_plots(campaign: Campaign, row: overview.CampaignRow) -> dict[Path, bytes]:
    """Return a campaign's own plots; empty if they cannot be drawn on this machine."""
    if plots.plots_unavailable():
        return {}
    drawn = {campaign.folder / "plots" / "trend.svg": plots.trend_plot(row.rounds)}
    if evaluation := facts.reported_evaluation(row.rounds, row.final):
        drawn[campaign.folder / "plots" / "roofline.svg"] = plots.roofline_plot(evaluation)
    return drawn


def _shows_plot(path: Path, plot: str) -> bool:
    """Return whether a page on disk shows a plot."""
    return path.is_file() and plot in path.read_text(errors="replace")


def _shared_pages(
    project: Project, campaigns: Sequence[Campaign], rows: Sequence[overview.CampaignRow]
) -> dict[Path, str | bytes]:
    """Return the overviews with their plot, and the pages of tips."""
    pages: dict[Path, str | bytes] = {**_overviews(project, rows, plots.plots_unavailable())}
    predictions = calibration.calibrate_campaigns(row.rounds for row in rows)
    if predictions.predictions and not plots.plots_unavailable():
        pages[project.devlog / calibration.PLOT] = plots.calibration_plot(predictions)
    records = [
        (record, project.relative(campaign.ledger.folder_of(record.round) / RECORD))
        for campaign, row in zip(campaigns, rows, strict=True)
        for record in row.rounds
    ]
    rows_with_tips = tips.list_tips(records, project.relative(project.knowledge))
    for subject in {row.subject for row in rows_with_tips}:
        pages[project.knowledge / subject.path] = tips.tips_page(subject, rows_with_tips)
    return pages


def _overviews(project: Project, rows: Sequence[overview.CampaignRow], plots_missing: str) -> dict[Path, str]:
    operators = sorted({row.manifest.target_op for row in rows})
    pages = {project.devlog / op / f"{op}.md": overview.operator_page(op, rows) for op in operators}
    pages[project.devlog / "README.md"] = overview.devlog_page(rows, _best_versions(project, operators))
    predictions = calibration.calibrate_campaigns(row.rounds for row in rows)
    pages[project.devlog / calibration.NAME] = calibration.calibration_page(predictions, plots_missing)
    return pages


def _best_versions(project: Project, operators: Iterable[str]) -> dict[tuple[str, str], str]:
    """Return the hash of the best version by operator and target, as far as records can be read."""
    hashes: dict[tuple[str, str], str] = {}
    for op in operators:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LeftOut)  # the campaign's own row says it
            hashes |= {
                (op, target): best.sha256 for target, best in choice.best_versions_by_target(project, op).items()
            }
    return hashes


def _struck_reasons(rows: Iterable[overview.CampaignRow], op: str) -> dict[str, str]:
    """Return the reason why a review removed a version of an operator, by the version's hash."""
    records = (record for row in rows if row.manifest.target_op == op for record in row.rounds)
    return {record.snapshot_sha256: record.struck.reason for record in records if record.struck}


def _row(campaign: Campaign) -> overview.CampaignRow:
    # A corrupt record elsewhere must not keep this campaign's pages from being written.
    try:
        return _read_row(campaign)
    except CorruptRecord:
        return overview.CampaignRow(campaign.manifest, (), unreadable=True)


def _read_row(campaign: Campaign) -> overview.CampaignRow:
    rounds = campaign.records()
    best = order.best_round(rounds)
    return overview.CampaignRow(
        campaign.manifest, rounds, final_race.read_final_race(campaign, best), last_race(campaign, best)
    )


def last_race(campaign: Campaign, best: RoundRecord | None) -> RaceRecord | None:
    """Return the last readable race on the target: of the best version if there is one, else of another."""
    races = campaign.folder.parent / "races"
    races_read = []
    for path in sorted(races.glob(f"[0-9][0-9][0-9]-{campaign.manifest.target}/{race.RECORD}"), reverse=True):
        with suppress(ValidationError):
            races_read.append(RaceRecord.model_validate_json(path.read_bytes()))
    own_races = [
        record for record in races_read if best and record.provenance.solution_sha256 == best.snapshot_sha256
    ]
    return next(iter(own_races or races_read), None)


def entry_files(project: Project, rounds: Sequence[RoundRecord]) -> dict[str, str]:
    """Return the page in the project of each entry that a lesson is about, by id of the entry."""
    ids = {record.lesson.entry for record in rounds if record.lesson.entry}
    paths = sorted(project.knowledge.rglob("*.md")) if ids else []
    return {path.stem: project.relative(path) for path in paths if path.stem in ids}


def _write_if_changed(path: Path, content: str | bytes) -> bool:
    data = content.encode() if isinstance(content, str) else content
    if path.is_file() and path.read_bytes() == data:
        return False
    files.write_file(path, data)
    return True
