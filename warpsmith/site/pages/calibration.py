"""Calibration and trust: predictions against outcomes, false wins, the red team, and the cost of a percent."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from warpsmith.campaign.calibration import Calibration, calibrate, calibrate_by_category
from warpsmith.core.spend import Spent
from warpsmith.lab.gate_tests.false_win_models import FalseWins
from warpsmith.lab.gate_tests.models import RedTeamReport
from warpsmith.reporting import facts, redteam
from warpsmith.site import addresses
from warpsmith.site.charts.scatter import SHAPES, ScatterPoint, draw_scatter
from warpsmith.site.citation import RECORD_FOLDERS, Citation, Quote, derive_from
from warpsmith.site.contents import CampaignHistory
from warpsmith.site.context import SiteContext
from warpsmith.site.markup import Html
from warpsmith.site.page import SearchText, SitePage, build_page


@dataclass(frozen=True)
class CategoryRow:
    """Calibration of one category of change."""

    name: str
    """Name of the category; `all` for all of them."""
    count: int
    """Number of its predictions."""
    figures: tuple[Quote | None, ...]
    """Medians of predicted and measured gain and of the error, and the share within a factor of two."""


def trust_page(context: SiteContext) -> SitePage:
    """Return the page."""
    histories = context.contents.campaigns
    citations = {(h.name, number): cited for h in histories for number, cited in h.citations.items()}
    calibration = calibrate(record for history in histories for record in history.rounds)
    categories = calibrate_by_category(calibration)
    numbers = {category: number for number, category in enumerate(categories)}
    points = [
        ScatterPoint(
            prediction,
            numbers[prediction.category],
            citations[prediction.campaign, prediction.round],
            addresses.way(
                addresses.TRUST,
                f"{addresses.campaign_address(prediction.campaign)}"
                f"#{addresses.round_anchor(prediction.campaign, prediction.round)}",
            ),
        )
        for prediction in calibration.predictions
    ]
    false_wins, reports = _read_gate_records(context)
    return build_page(
        "trust",
        addresses.TRUST,
        title="Calibration and trust",
        found_by=(
            SearchText(
                "Calibration and trust", addresses.TRUST, "page",
                "Predictions against outcomes, false wins, red team",
                "calibration trust predictions red team attacks controls false wins cost dollars",
            ),
        ),
        chart=draw_scatter(points) if points else Html(""),
        shapes=[(category, SHAPES[number % len(SHAPES)], number) for category, number in numbers.items()],
        rows=[
            *(_row(category, part, citations) for category, part in categories.items()),
            *([_row("all", calibration, citations)] if calibration.predictions else []),
        ],
        points=[
            (
                point,
                Quote(point.prediction.predicted, point.citation, "/plan/predicted_gain"),
                Quote(point.prediction.measured, point.citation, "/outcome/gain"),
            )
            for point in points
        ],
        false_wins=false_wins,
        reports=[(report, citation, redteam.redteam_summary(report).splitlines()) for report, citation in reports],
        spending=_spending(histories),
        campaigns=len(histories),
        campaign_address=addresses.campaign_address,
    )  # fmt: skip


def _row(name: str, part: Calibration, citations: dict[tuple[str, int], Citation]) -> CategoryRow:
    """Return the figures of a category."""
    records = [citations[prediction.campaign, prediction.round] for prediction in part.predictions]
    names = ("median_predicted", "median_measured", "median_error", "within_2x")
    figures = (derive_from(getattr(part, field), records, field) for field in names)
    return CategoryRow(name, len(part.predictions), tuple(figures))


def _spending(
    histories: Iterable[CampaignHistory],
) -> list[tuple[CampaignHistory, Spent, Quote | None, Quote | None]]:
    """Return the campaigns that spent money, with the cost, the compounded gain and the dollars per percent."""
    rows = []
    for history in histories:
        if spent := facts.total_spent(history.rounds):
            records = [history.citations[stored.number] for stored in history.stored]
            gained = derive_from(facts.compounded_gain(history.rounds), records, "compounded_gain")
            each = derive_from(facts.usd_per_percent(history.rounds), records, "usd_per_percent")
            rows.append((history, spent, gained, each))
    return rows


def _read_gate_records(
    context: SiteContext,
) -> tuple[list[tuple[FalseWins, Citation]], list[tuple[RedTeamReport, Citation]]]:
    """Read the records of `warpsmith aa` and `warpsmith redteam`; files of other kinds are left alone."""
    false_wins: list[tuple[FalseWins, Citation]] = []
    reports: list[tuple[RedTeamReport, Citation]] = []
    for path in _gate_files(context):
        try:
            data = path.read_bytes()
            keys = set(json.loads(data))
        except (OSError, ValueError, TypeError):
            continue
        try:
            if "attacks" in keys:
                reports.append((RedTeamReport.model_validate_json(data), context.contents.archive.cite(path)))
            elif "regressions" in keys:
                false_wins.append((FalseWins.model_validate_json(data), context.contents.archive.cite(path)))
        except ValidationError as error:
            context.contents.note(error, path)
    return false_wins, reports


def _gate_files(context: SiteContext) -> list[Path]:
    folders = [context.project.root / folder for folder in RECORD_FOLDERS if not folder.endswith("verdicts")]
    return [path for folder in folders for path in sorted(folder.glob("*.json")) if ".unfinished" not in path.name]
