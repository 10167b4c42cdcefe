"""The history of an operator: every version as a point, over all languages and campaigns of one target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from warpsmith.core.campaign import RoundRecord
from warpsmith.core.evaluation import REFERENCE, Verdict
from warpsmith.reporting import facts, format
from warpsmith.site.charts.axes import horizontal_grid, marker, padded_axis
from warpsmith.site.citation import Citation
from warpsmith.site.markup import Html, element

_LEFT, _STEP, _TOP, _BOTTOM = 62, 34, 22, 250
_FAR = 3.0
"""Smallest speedup from which the axis leaves out 1."""
_FAILED = 278
"""Height at which versions without a result stand."""


@dataclass(frozen=True)
class HistoryPoint:
    """One version in the history."""

    record: RoundRecord
    """Record of its round."""
    citation: Citation
    """File of the record."""
    anchor: str
    """Anchor of its description on the page."""
    language: int
    """Number of its language, by which it is coloured."""

    @property
    def fate(self) -> str:
        """Fate of the version: `accepted`, `noted`, `untimed`, `rolled-back`, `invalid` or `struck`."""
        if self.record.struck:
            return "struck"
        return FATES[self.record.evaluation.decision.verdict]


FATES = {
    Verdict.ACCEPT: "accepted",
    Verdict.ACCEPT_WITH_NOTE: "noted",
    Verdict.UNTIMED: "untimed",
    Verdict.ROLLBACK: "rolled-back",
    Verdict.INVALID: "invalid",
}
"""Fate of a version by its verdict."""

SHAPES = {
    "accepted": "circle", "noted": "square", "untimed": "triangle",
    "rolled-back": "cross", "invalid": "plus", "struck": "diamond",
}  # fmt: skip
"""Mark of a version by its fate; colour alone does not tell them apart."""


def draw_history(points: Sequence[HistoryPoint]) -> Html:
    """Draw the speedup over the reference by version, in the order of their rounds."""
    means = [point.record.evaluation.aggregate(REFERENCE) for point in points]
    timed = [mean for mean in means if mean]
    width = max(430, _LEFT + _STEP * len(points) + 30)
    drawn = []
    if timed:
        ends = [end for mean in timed for end in (mean.interval.low, mean.interval.high, mean.speedup)]
        axis = padded_axis([1.0, *ends] if min(ends) < _FAR else ends, _BOTTOM, _TOP)
        drawn.append(horizontal_grid(axis, _LEFT, width - 10, {tick: f"{tick:g}x" for tick in axis.ticks(6)}))
        if axis.low < 1 < axis.high:
            y = axis.position(1)
            drawn.append(element("line", class_="axis", x1=_LEFT, x2=width - 10, y1=y, y2=y))
    drawn += _campaigns(points, width)
    if len(timed) < len(points):
        drawn.append(element("text", "no result", class_="tick", x=_LEFT - 6, y=_FAILED + 4, text_anchor="end"))
    for index, (point, mean) in enumerate(zip(points, means, strict=True)):
        x = _x(index)
        y = axis.position(mean.speedup) if mean else _FAILED
        interval = Html("")
        if mean:
            low, high = axis.position(mean.interval.low), axis.position(mean.interval.high)
            interval = element("line", class_="whisker", x1=x, x2=x, y1=low, y2=high)
        drawn.append(_point(point, x, y, interval))
    return element(
        "svg", *drawn, class_="chart", viewBox=f"0 0 {width} 318", width=width, height=318, role="group",
        aria_label=f"Speedup over {facts.side_name(REFERENCE)} by version",
    )  # fmt: skip


def _x(index: int) -> float:
    return _LEFT + _STEP * (index + 0.5)


def _campaigns(points: Sequence[HistoryPoint], width: int) -> list[Html]:
    """Separate the campaigns by thin lines."""
    edges = [
        _LEFT + _STEP * (index + 1)
        for index, (before, after) in enumerate(pairwise(points))
        if before.record.campaign != after.record.campaign
    ]
    return [element("line", class_="edge", x1=x, x2=x, y1=_TOP - 8, y2=_FAILED + 12) for x in edges if x < width]


def _point(point: HistoryPoint, x: float, y: float, interval: Html) -> Html:
    record = point.record
    mean = record.evaluation.aggregate(REFERENCE)
    measured = format.speedup(mean) if mean else "no result"
    words = (
        f"{record.solution}, {facts.verdict_text(record)}: {measured}. {format.plain(record.plan.hypothesis, 200)}"
    )
    shapes = [
        element("title", words),
        element("rect", class_="target", x=x - _STEP / 2, y=_TOP - 6, width=float(_STEP), height=290.0),
        interval,
        marker(SHAPES[point.fate], x, y, 5.5, class_=f"mark {point.fate}"),
        element("text", record.solution.split("/")[-1], class_="tick", x=x, y=_FAILED + 26, text_anchor="middle"),
    ]
    exact = Html(repr(mean.speedup)) if mean else None
    position = record.evaluation.aggregates.index(mean) if mean else None
    at = None if position is None else f"/evaluation/aggregates/{position}/speedup"
    return element(
        "a", *shapes, href=f"#{point.anchor}", class_=f"language-{point.language}",
        data_value=exact, data_at=at, **point.citation.attributes,
    )  # fmt: skip
