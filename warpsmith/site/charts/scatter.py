"""Predicted against measured gains, one point for each round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import copysign, log10

from warpsmith.campaign.calibration import Prediction
from warpsmith.reporting import format
from warpsmith.site.charts.axes import Axis, horizontal_grid, marker, vertical_grid
from warpsmith.site.citation import Citation
from warpsmith.site.markup import Html, element

_SIZE = 430
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 420, 12, 368
_LINEAR = 2.0
"""Gain in percent up to which the axes are linear: small gains and losses are told apart there."""
_MARKS = (-50, -20, -5, 0, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
SHAPES = ("circle", "square", "diamond", "triangle", "down", "plus", "cross")
"""Marks of the categories, in the order of their names."""


@dataclass(frozen=True)
class ScatterPoint:
    """The prediction of one round."""

    prediction: Prediction
    """Predicted and measured gain."""
    group: int
    """Number of its category."""
    citation: Citation
    """Record of the round."""
    url: str
    """Description of the round, relative to the page."""


def draw_scatter(points: Sequence[ScatterPoint]) -> Html:
    """Draw measured over predicted gain in percent; lines mark equality and a factor of two."""
    predicted = [100 * p.prediction.predicted for p in points]
    measured = [100 * p.prediction.measured for p in points]
    high = _bend(max([*predicted, *measured, 10.0]) * 1.2)
    across = Axis(_bend(min([*predicted, 0.0]) * 1.2), high, _LEFT, _RIGHT, logarithmic=False)
    up = Axis(_bend(min([*measured, -1.0]) * 1.2), high, _BOTTOM, _TOP, logarithmic=False)
    drawn = [
        horizontal_grid(up, _LEFT, _RIGHT, _labels(up, 14)),
        vertical_grid(across, _TOP, _BOTTOM, _labels(across, 42)),
    ]
    for factor, name in ((1.0, "axis"), (0.5, "edge"), (2.0, "edge")):
        line = [(x / 10, factor * x / 10) for x in range(0, 30000, 5)]
        inside = [(x, y) for x, y in line if _bend(y) <= high and _bend(x) <= high]
        step = max(1, len(inside) // 60)
        path = " ".join(f"{across.position(_bend(x)):.1f},{up.position(_bend(y)):.1f}" for x, y in inside[::step])
        drawn.append(element("polyline", class_=name, points=path, fill="none"))
    drawn += [_point(p, across, up) for p in points]
    middle = (_LEFT + _RIGHT) / 2
    drawn.append(element("text", "predicted gain", class_="tick", x=middle, y=_BOTTOM + 40, text_anchor="middle"))
    turned = f"rotate(-90 14 {(_TOP + _BOTTOM) / 2})"
    drawn.append(
        element(
            "text", "measured gain", class_="tick", x=14, y=(_TOP + _BOTTOM) / 2, text_anchor="middle",
            transform=turned,
        )
    )  # fmt: skip
    return element(
        "svg", *drawn, class_="chart", viewBox=f"0 0 {_SIZE} {_SIZE - 14}", width=_SIZE, height=_SIZE - 14,
        role="group", aria_label="Measured over predicted gain, one point for each round",
    )  # fmt: skip


def _labels(axis: Axis, distance: float) -> dict[float, str]:
    """Return the marks of an axis with their labels, each at least so far from the one before."""
    labels: dict[float, str] = {}
    last = None
    for mark in _MARKS:
        value, position = _bend(mark), axis.position(_bend(mark))
        if axis.low <= value <= axis.high and (last is None or abs(position - last) >= distance):
            labels[value], last = f"{mark:+d} %" if mark else "0", position
    return labels


def _bend(percent: float) -> float:
    """Return a gain on an axis that is linear up to a limit and logarithmic beyond."""
    size = abs(percent)
    return percent / _LINEAR if size <= _LINEAR else copysign(1 + log10(size / _LINEAR) * 2.3, percent)


def _point(p: ScatterPoint, across: Axis, up: Axis) -> Html:
    predicted, measured = 100 * p.prediction.predicted, 100 * p.prediction.measured
    words = (
        f"{p.prediction.campaign}, round {p.prediction.round}: predicted {format.gain(p.prediction.predicted)},"
        f" measured {format.gain(p.prediction.measured)}"
    )
    mark = marker(
        SHAPES[p.group % len(SHAPES)], across.position(_bend(predicted)), up.position(_bend(measured)), 4.5,
        class_=f"mark group-{p.group}",
    )  # fmt: skip
    return element(
        "a", element("title", words), mark, href=p.url, data_at="/outcome/gain",
        data_value=Html(repr(p.prediction.measured)), **p.citation.attributes,
    )  # fmt: skip
