"""The page of predictions: how well plans foretold what rounds gained, over all campaigns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from warpsmith.campaign.calibration import Calibration, Prediction, by_category, calibrate
from warpsmith.core.campaign import RoundRecord
from warpsmith.reporting.format import Md, link
from warpsmith.reporting.templating import fill

NAME, PLOT = "calibration.md", "calibration.svg"
"""The page and its plot, in the devlog."""


def over(campaigns: Iterable[Sequence[RoundRecord]]) -> Calibration:
    """The predictions of the rounds of several campaigns."""
    return calibrate(record for rounds in campaigns for record in rounds)


def page(calibration: Calibration, plots_missing: str = "") -> str:
    """`calibration.md`; `plots_missing` says why there is no plot beside it, empty: there is one."""
    return fill(
        "calibration",
        all=calibration,
        categories=by_category(calibration),
        where=_where,
        plot=PLOT,
        plots_missing=plots_missing,
    )


def _where(prediction: Prediction) -> Md:
    """A link to the round, from the devlog."""
    path = f"{prediction.operator}/{prediction.campaign}/rounds/{prediction.round:03d}/summary.md"
    return link(f"{prediction.campaign}, round {prediction.round}", path, ".")
