"""Rooflines with the path of the versions: one panel for each workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.core.evaluation import Timing
from warpsmith.reporting import format, plots
from warpsmith.site.charts.axes import Axis, horizontal_grid, marker, padded_axis, spread_labels, vertical_grid
from warpsmith.site.charts.history import SHAPES, HistoryPoint
from warpsmith.site.markup import Html, element

_WIDTH, _HEIGHT = 306, 236
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 222, 12, 198
_LABELS = 240
"""Position of the versions' names, beside the chart."""


@dataclass(frozen=True)
class RooflinePoint:
    """A version at one workload."""

    point: HistoryPoint
    """The version."""
    timing: Timing
    """Its times there."""
    address: int
    """Place of the workload among the record's results."""


def draw_roofline(workload: str, points: Sequence[RooflinePoint]) -> Html:
    """Draw the rate over the intensity of one workload below its ceiling; a line joins accepted versions."""
    rates = [p.timing.rate for p in points]
    ceilings = [p.timing.rate / p.timing.ceiling_share for p in points]
    intensity = plots.intensity(points[-1].timing)
    slope, flat = plots.ceiling_lines([p.timing for p in points])
    across = Axis(intensity / 4, intensity * 4, _LEFT, _RIGHT)
    up = padded_axis([*rates, *ceilings], _BOTTOM, _TOP, 1.3)
    # Every version does the same work, so the path is upright; thin lines lead from the points to their names.
    x = across.position(intensity)
    ys = [up.position(rate) for rate in rates]
    accepted = [index for index, p in enumerate(points) if p.point.record.verdict.accepted]
    path = " ".join(f"{x:.1f},{ys[index]:.1f}" for index in accepted)
    ticks = {tick: format.rate(tick).replace("FLOP/s", "") for tick in up.ticks(5)}
    drawn = [
        horizontal_grid(up, _LEFT, _RIGHT, ticks),
        vertical_grid(across, _TOP, _BOTTOM, {tick: f"{tick:g}" for tick in across.ticks(4)}),
        *_roof(across, up, slope, flat),
        element("polyline", class_="path", points=path),
    ]
    labels = spread_labels((ys[index] for index in accepted), 11)
    over = max([0.0, *(label - _BOTTOM for label in labels)])
    for label, index in zip(labels, accepted, strict=True):
        y, record = label - over, points[index].point.record
        drawn.append(element("line", class_="leader", x1=x + 6, y1=ys[index], x2=_LABELS - 4, y2=y))
        drawn.append(element("text", record.solution, class_="tick", x=_LABELS, y=y + 4))
    drawn += [_mark(p, x, y) for p, y in zip(points, ys, strict=True)]
    drawn.append(
        element(
            "text", "FLOPs per byte", class_="tick", x=(_LEFT + _RIGHT) / 2, y=_HEIGHT - 6, text_anchor="middle"
        )
    )
    return element(
        "svg", *drawn, class_="chart", viewBox=f"0 0 {_WIDTH} {_HEIGHT}", width=_WIDTH, height=_HEIGHT,
        role="group", aria_label=f"Roofline at {format.plain(workload, 80)}, FLOP/s over FLOPs per byte",
    )  # fmt: skip


def _roof(across: Axis, up: Axis, slope: float, flat: Sequence[float]) -> list[Html]:
    top = min([up.high, *flat])
    ends = [max(across.low, up.low / slope), min(across.high, top / slope)]
    lines = []
    if ends[0] < ends[1]:
        (x1, x2), (y1, y2) = map(across.position, ends), (up.position(end * slope) for end in ends)
        lines.append(element("line", class_="roof", x1=x1, x2=x2, y1=y1, y2=y2))
    for ceiling in flat:
        start, y = across.position(max(across.low, ceiling / slope)), up.position(ceiling)
        lines.append(element("line", class_="roof", x1=start, x2=across.end, y1=y, y2=y))
    return lines


def _mark(p: RooflinePoint, x: float, y: float) -> Html:
    record = p.point.record
    words = (
        f"{record.solution}: {format.rate(p.timing.rate)}, {format.percent(p.timing.ceiling_share)} of its ceiling"
    )
    return element(
        "a", element("title", words), marker(SHAPES[p.point.fate], x, y, 4.5, class_=f"mark {p.point.fate}"),
        href=f"#{p.point.anchor}", class_=f"language-{p.point.language}", data_value=Html(repr(p.timing.rate)),
        data_at=f"/evaluation/results/{p.address}/timing/rate", **p.point.citation.attributes,
    )  # fmt: skip
