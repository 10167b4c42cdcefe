"""Rendering of pages: those of a campaign, and those that several campaigns share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

from pydantic import ValidationError

from warpsmith import files
from warpsmith.campaign import firewall
from warpsmith.campaign.evidence import stored_evaluations
from warpsmith.campaign.evidence.contents import ContentHashes, hash_contents
from warpsmith.campaign.history import final_race, store
from warpsmith.campaign.history import index as round_index
from warpsmith.campaign.history import records as order
from warpsmith.campaign.history.records import StoredRound
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
from warpsmith.reporting.rendering.expected_pages import ExpectedPages
from warpsmith.reporting.rendering.last_report import REPORT as REPORT
from warpsmith.reporting.rendering.rendered_files import RenderedFiles, hash_inputs
from warpsmith.use import choice


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
    rows = _light_rows(project, campaigns)
    for campaign in selected:
        if rows[campaign.folder].unreadable:
            campaign.records()  # raises
        stored_evaluations.campaign_renewals(campaign)  # as it does for a rerun
    rendered = RenderedFiles(project)
    _add_shared_pages(rendered, campaigns, rows)
    changed = []
    for campaign in selected:  # one at a time: the records of all would not fit into memory
        _add_campaign_pages(rendered, campaign)
        changed += rendered.write()
    pages: dict[Path, str | bytes] = {}
    for op in {campaign.manifest.target_op for campaign in selected}:
        pages |= race.render_races(project, op, _struck_reasons(rows.values(), op), redraw=only is None)
        pages |= map_pages.render_maps(project, op, redraw=only is None)
        pages |= port_pages.render_ports(project, op)
    for path, content in pages.items():
        rendered.add_content(path, content)
    return sorted(changed + rendered.write()) + index.update_pages(project)


def expected_pages(project: Project, contents: ContentHashes | None = None) -> ExpectedPages:
    """Return every page under the devlog as the records give it now, except for campaigns with corrupt records.

    Plots are not drawn. A calibration page that shows no plot on disk keeps the reason for that. Where a manifest
    does not read, the pages about all campaigns are left out.

    Args:
        project: the project.
        contents: hashes of its files as they are now; read here by default.
    """
    contents = contents or hash_contents(project)
    predictions = project.devlog / calibration.NAME
    plots_missing = "" if _shows_plot(predictions, calibration.PLOT) else plots.plots_unavailable()
    return ExpectedPages(project, contents, plots_missing, _expected_campaign, _overviews)


def _expected_campaign(project: Project, folder: Path) -> tuple[overview.CampaignRow, dict[Path, str]]:
    """Return a campaign's row, with light records, and its pages; none if a record is corrupt."""
    campaign = store.read_campaign(project, folder)
    try:
        rounds = campaign.closed_rounds()
        row = _row(campaign, [stored.record for stored in rounds])
    except CorruptRecord:
        return _unreadable_row(campaign), {}
    pages: dict[Path, str] = {}
    with suppress(CorruptRecord):  # a rerun may be incomplete
        pages = {path: render() for path, (_, render) in _campaign_pages(campaign, rounds, row).items()}
    return row.lightened(), pages


def _add_campaign_pages(rendered: RenderedFiles, campaign: Campaign) -> None:
    """Add a campaign's own pages and plots; raise CorruptRecord."""
    rounds = campaign.closed_rounds()
    row = _row(campaign, [stored.record for stored in rounds])
    for path, (inputs, render) in _campaign_pages(campaign, rounds, row).items():
        rendered.add(path, inputs, render)
    if plots.plots_unavailable():
        return
    folder = campaign.folder / "plots"
    rendered.add(folder / "trend.svg", hash_inputs(*_round_inputs(rounds)), partial(plots.trend_plot, row.rounds))
    if evaluation := facts.reported_evaluation(row.rounds, row.final):
        inputs = hash_inputs(evaluation.model_dump_json())
        rendered.add(folder / "roofline.svg", inputs, partial(plots.roofline_plot, evaluation))


def _campaign_pages(
    campaign: Campaign, rounds: Sequence[StoredRound], row: overview.CampaignRow
) -> dict[Path, tuple[str, Callable[[], str]]]:
    """Return the inputs of a campaign's own pages, and the functions that render them; raise CorruptRecord."""
    project, folder = campaign.project, campaign.folder
    reruns = stored_evaluations.campaign_renewals(campaign)
    links = report.ReportLinks(project.relative(folder), entry_files(project, row.rounds))
    pages: dict[Path, tuple[str, Callable[[], str]]] = {}
    for stored, record_inputs in zip(rounds, _round_inputs(rounds), strict=True):
        rerun = reruns.get(stored.folder.name)
        inputs = hash_inputs(record_inputs, rerun.model_dump_json() if rerun else "")
        pages[stored.folder / "summary.md"] = (inputs, partial(report.round_page, stored.record, rerun))
    closure, reads = campaign.closure(), firewall.read_reads(folder)
    inputs = hash_inputs(
        row.manifest.model_dump_json(),
        *_round_inputs(rounds),
        *(f"{name} {rerun.model_dump_json()}" for name, rerun in reruns.items()),
        *(part.model_dump_json() for part in (row.final, closure, *reads) if part),
        str(links),
    )
    pages[folder / "performance_trend.md"] = (inputs, partial(report.trend_page, row.manifest, row.rounds))
    pages[folder / REPORT] = (
        inputs,
        partial(report.report_page, row.manifest, row.rounds, links, row.final, reruns, closure, reads),
    )
    return pages


def _round_inputs(rounds: Sequence[StoredRound]) -> list[str]:
    """Return, for each round, the hash of its record and its strike."""
    return [
        stored.sha256 + (stored.record.struck.model_dump_json() if stored.record.struck else "")
        for stored in rounds
    ]


def _shows_plot(path: Path, plot: str) -> bool:
    """Return whether a page on disk shows a plot."""
    return path.is_file() and plot in path.read_text(errors="replace")


def _add_shared_pages(
    rendered: RenderedFiles, campaigns: Sequence[Campaign], rows: Mapping[Path, overview.CampaignRow]
) -> None:
    """Add the overviews with their plot, and the pages of tips."""
    project, every = rendered.project, list(rows.values())
    inputs = hash_inputs(plots.plots_unavailable(), *(row.inputs for row in every))
    overviews = cache(partial(_overviews, project, every, plots.plots_unavailable()))
    operators = {row.manifest.target_op for row in every}
    paths = [project.devlog / op / f"{op}.md" for op in operators]
    best = "".join(sorted(map(str, _best_versions(project, operators).items())))
    for path in (*paths, project.devlog / "README.md", project.devlog / calibration.NAME):
        rendered.add(path, hash_inputs(inputs, best), partial(_overview, overviews, path))
    predictions = calibration.calibrate_campaigns(row.rounds for row in every)
    if predictions.predictions and not plots.plots_unavailable():
        draw = partial(plots.calibration_plot, predictions)
        rendered.add(project.devlog / calibration.PLOT, hash_inputs(predictions.model_dump_json()), draw)
    records = [
        (record, project.relative(campaign.ledger.folder_of(record.round) / RECORD))
        for campaign in campaigns
        for record in rows[campaign.folder].rounds
        if record.lesson.tip
    ]
    rows_with_tips = tips.list_tips(records, project.relative(project.knowledge))
    for subject in {row.subject for row in rows_with_tips}:
        path = project.knowledge / subject.path
        rendered.add(path, inputs, partial(tips.tips_page, subject, rows_with_tips))


def _overview(overviews: Callable[[], Mapping[Path, str]], path: Path) -> str:
    return overviews()[path]


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


def _light_rows(project: Project, campaigns: Sequence[Campaign]) -> dict[Path, overview.CampaignRow]:
    """Return the row of each campaign by its folder, with light records from the index of rounds.

    A corrupt record elsewhere must not keep a campaign's pages from being written.
    """
    by_folder = {campaign.folder: campaign for campaign in campaigns}

    def read(folder: Path) -> overview.LightRounds:
        rounds = by_folder[folder].closed_rounds()
        records = [stored.record for stored in rounds]
        best = order.best_round(records)
        return overview.LightRounds(
            records=tuple(overview.light_record(record, best) for record in records),
            inputs=hash_inputs(*_round_inputs(rounds)),
        )

    every = round_index.derive_from_rounds(project.root, list(by_folder), "overview", overview.LightRounds, read)
    rows = {}
    for campaign, light in zip(campaigns, every, strict=True):
        rows[campaign.folder] = _unreadable_row(campaign)
        if light is not None:
            with suppress(CorruptRecord):
                rows[campaign.folder] = _row(campaign, light.records, light.inputs)
    return rows


def _unreadable_row(campaign: Campaign) -> overview.CampaignRow:
    return overview.CampaignRow(campaign.manifest, (), unreadable=True)


def _row(campaign: Campaign, rounds: Sequence[RoundRecord], inputs: str = "") -> overview.CampaignRow:
    """Return the row of a campaign with these rounds; raise CorruptRecord if its final race does not read."""
    best = order.best_round(rounds)
    final, raced = final_race.read_final_race(campaign, best), last_race(campaign, best)
    parts = (campaign.manifest, final, raced)
    inputs = hash_inputs(inputs, *(part.model_dump_json() for part in parts if part)) if inputs else ""
    return overview.CampaignRow(campaign.manifest, rounds, final, raced, inputs=inputs)


def last_race(campaign: Campaign, best: RoundRecord | None) -> RaceRecord | None:
    """Return the last readable race on the target: of the best version if there is one, else of another."""
    races = campaign.folder.parent / "races"
    races_read = []
    paths = races.glob(f"{files.NUMBERED}-{campaign.manifest.target}/{race.RECORD}")
    for path in sorted(paths, key=files.number_order, reverse=True):
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
