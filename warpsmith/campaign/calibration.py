"""Calibration: predicted gains compared with the measured ones."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from warpsmith.core.base import Model
from warpsmith.core.campaign import Category, RoundRecord


class Prediction(Model):
    """Prediction and measurement of one round."""

    operator: str
    """Operator of its campaign."""
    campaign: str
    """Name of its campaign."""
    round: int
    """Number of the round."""
    category: Category
    """The kind of change."""
    predicted: float
    """The plan's gain over the best version: 0.2 is 20 % faster."""
    measured: float
    """The gain that the lab measured."""


class Calibration(Model):
    """Predicted against measured gains."""

    predictions: tuple[Prediction, ...]
    """One for each round that was measured against a best version."""
    median_predicted: float | None
    """Median of the predicted gains; null without predictions."""
    median_measured: float | None
    """Median of the measured gains; null without predictions."""
    median_error: float | None
    """Median of |predicted - measured|; null without predictions."""
    within_2x: float | None
    """Share of the predictions between half and twice the measured gain; null without predictions."""


def calibrate(rounds: Iterable[RoundRecord]) -> Calibration:
    """Compare predicted and measured gains of rounds; baselines and struck versions do not count."""
    predictions = tuple(
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
    return _summarize(predictions)


def calibrate_by_category(calibration: Calibration) -> dict[Category, Calibration]:
    """Split a calibration by the category of change, in the order of the names."""
    groups: dict[Category, list[Prediction]] = {}
    for prediction in calibration.predictions:
        groups.setdefault(prediction.category, []).append(prediction)
    return {category: _summarize(tuple(groups[category])) for category in sorted(groups)}


def _summarize(predictions: tuple[Prediction, ...]) -> Calibration:
    if not predictions:
        return Calibration(
            predictions=(), median_predicted=None, median_measured=None, median_error=None, within_2x=None
        )
    return Calibration(
        predictions=predictions,
        median_predicted=median(p.predicted for p in predictions),
        median_measured=median(p.measured for p in predictions),
        median_error=median(abs(p.predicted - p.measured) for p in predictions),
        within_2x=sum(map(_within_2x, predictions)) / len(predictions),
    )


def _within_2x(prediction: Prediction) -> bool:
    low, high = sorted((prediction.measured / 2, prediction.measured * 2))
    return low <= prediction.predicted <= high
