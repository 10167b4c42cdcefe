"""Calibration page: predicted against measured gains of all campaigns' rounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from warpsmith.campaign.calibration import Calibration, Prediction, calibrate, calibrate_by_category
from warpsmith.core.campaign import RoundRecord
from warpsmith.ledger.store import RECORD
from warpsmith.reporting.format import Md, link
from warpsmith.reporting.templating import fill_template

NAME, PLOT = "calibration.md", "calibration.svg"
"""File names of the page and its plot in the devlog."""


def calibrate_campaigns(campaigns: Iterable[Sequence[RoundRecord]]) -> Calibration:
    """Calibrate the predictions of the rounds of several campaigns."""
    return calibrate(record for rounds in campaigns for record in rounds)


def calibration_page(calibration: Calibration, plots_missing: str = "") -> str:
    """Render `calibration.md`; `plots_missing` is the reason for a missing plot, or empty."""
    return fill_template(
        "calibration",
        all=calibration,
        categories=calibrate_by_category(calibration),
        round_link=_round_link,
        plot=PLOT,
        plots_missing=plots_missing,
    )


def _round_link(prediction: Prediction) -> Md:
    """Return a link to the round, relative to the devlog."""
    path = f"{prediction.operator}/{prediction.campaign}/rounds/{prediction.round:03d}/{RECORD}"
    return link(f"{prediction.campaign}, round {prediction.round}", path, ".")
