"""Calibration: how well predicted gains foretold the measured ones."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from warpsmith.core.base import Model
from warpsmith.core.campaign import Category, RoundRecord


class Prediction(Model):
    """One round's."""

    operator: str
    """What its campaign is about."""
    campaign: str
    """Its campaign."""
    round: int
    """Its number."""
    category: Category
    """The kind of change."""
    predicted: float
    """The plan's gain over the best version: 0.2 is 20 % faster."""
    measured: float
    """The lab's."""


class Calibration(Model):
    """Predicted against measured gains."""

    predictions: tuple[Prediction, ...]
    """One a round that was measured against a best version."""
    median_predicted: float | None
    """Median of the predicted gains; null without predictions."""
    median_measured: float | None
    """Median of the measured gains; null without predictions."""
    median_error: float | None
    """Median of |predicted - measured|; null without predictions."""
    within_2x: float | None
    """Share of the predictions between half and twice the measured gain; null without predictions."""


def calibrate(rounds: Iterable[RoundRecord]) -> Calibration:
    """Predicted against measured gains of the rounds that were measured; baselines predict nothing.

    The gain of a version that was struck since is none.
    """
    found = tuple(
        Prediction(
            operator=record.evaluation.definition,
            campaign=record.campaign,
            round=record.round,
            category=record.plan.category,
            predicted=record.plan.predicted_gain,
            measured=record.outcome.gain,
        )
        for record in rounds
        if record.plan.category != "baseline" and record.outcome.gain is not None and not record.struck
    )
    return _over(found)


def calibrate_by_category(calibration: Calibration) -> dict[Category, Calibration]:
    """The same predictions apart by the kind of change, by name."""
    found: dict[Category, list[Prediction]] = {}
    for prediction in calibration.predictions:
        found.setdefault(prediction.category, []).append(prediction)
    return {category: _over(tuple(found[category])) for category in sorted(found)}


def _over(found: tuple[Prediction, ...]) -> Calibration:
    if not found:
        return Calibration(
            predictions=(), median_predicted=None, median_measured=None, median_error=None, within_2x=None
        )
    return Calibration(
        predictions=found,
        median_predicted=median(p.predicted for p in found),
        median_measured=median(p.measured for p in found),
        median_error=median(abs(p.predicted - p.measured) for p in found),
        within_2x=sum(map(_within_2x, found)) / len(found),
    )


def _within_2x(prediction: Prediction) -> bool:
    low, high = sorted((prediction.measured / 2, prediction.measured * 2))
    return low <= prediction.predicted <= high
