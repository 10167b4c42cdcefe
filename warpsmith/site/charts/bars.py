"""The front page's picture: the speedup of each operator over torch.compile and over the best peer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from warpsmith.reporting import format
from warpsmith.site.charts.axes import Axis, padded_axis, vertical_grid
from warpsmith.site.citation import Quote
from warpsmith.site.markup import Html, element

WIDTH = 860
_LEFT, _RIGHT, _TOP = 214, 742, 10
_BAR, _GAP = 15, 12


@dataclass(frozen=True)
class Bar:
    """One speedup as a bar with its interval."""

    kind: str
    """`compiled` or `peer`, by which it is coloured."""
    label: str
    """Side that it is over."""
    mean: Quote
    """Geometric mean with its interval."""
    remarks: tuple[str, ...] = ()
    """Marks such as `near`."""


@dataclass(frozen=True)
class BarGroup:
    """The speedups of one operator on one target."""

    operator: str
    """Name of the operator."""
    detail: str
    """Best version and target."""
    url: str
    """Page of the operator, relative to the page with the chart."""
    bars: Sequence[Bar]
    """Its bars; it may have none."""


def draw_bars(groups: Sequence[BarGroup], root: str) -> Html:
    """Draw the groups below each other; `root` is the way from the page to the root of the site."""
    bars = [bar for group in groups for bar in group.bars]
    if not bars:
        return Html("")
    ends = chain.from_iterable((b.mean.value.interval.low, b.mean.value.interval.high) for b in bars)
    axis = padded_axis([1.0, *ends, *(bar.mean.value.speedup for bar in bars)], _LEFT, _RIGHT)
    height = _TOP + sum(max(2, len(group.bars)) * _BAR + _GAP for group in groups)
    labels = {tick: f"{tick:g}x" for tick in axis.ticks()}
    drawn = [vertical_grid(axis, _TOP, height, labels)]
    y: float = _TOP + _GAP / 2
    for group in groups:
        drawn.append(_group(group, axis, y, root))
        y += max(2, len(group.bars)) * _BAR + _GAP
    drawn.append(element("line", class_="axis", x1=axis.position(1), x2=axis.position(1), y1=_TOP, y2=height))
    return element(
        "svg", *drawn, class_="chart wide", viewBox=f"0 0 {WIDTH} {height + 24}", role="group",
        aria_label="Speedup by operator, with 95 % intervals",
    )  # fmt: skip


def _group(group: BarGroup, axis: Axis, y: float, root: str) -> Html:
    middle = y + max(2, len(group.bars)) * _BAR / 2
    name = element("text", group.operator, class_="label", x=_LEFT - 12, y=middle - 1, text_anchor="end")
    detail = element("text", group.detail, class_="tick", x=_LEFT - 12, y=middle + 13, text_anchor="end")
    parts = [element("a", name, href=group.url), detail]
    if not group.bars:
        parts.append(
            element("text", "no comparison recorded", class_="tick", x=axis.position(1) + 8, y=middle + 4)
        )
    for index, bar in enumerate(group.bars):
        parts.append(_bar(bar, axis, y + index * _BAR, root, f"{group.operator}, {group.detail}"))
    return Html("".join(parts))


def _bar(bar: Bar, axis: Axis, y: float, root: str, subject: str) -> Html:
    mean = bar.mean.value
    start, end = sorted((axis.position(1), axis.position(mean.speedup)))
    low, high = axis.position(mean.interval.low), axis.position(mean.interval.high)
    middle = y + _BAR / 2
    remarks = f" ({', '.join(bar.remarks)})" if bar.remarks else ""
    text = f"{format.factor(mean.speedup)} {bar.label}{remarks}"
    shapes = [
        element("rect", class_=f"bar {bar.kind}", x=start, y=y + 2, width=max(1.0, end - start), height=_BAR - 4),
        element("line", class_="whisker", x1=low, x2=high, y1=middle, y2=middle),
        *(element("line", class_="whisker", x1=x, x2=x, y1=middle - 3, y2=middle + 3) for x in (low, high)),
        element("text", text, class_="value", x=max(end, high) + 6, y=middle + 4),
        element("title", f"{subject}: {format.speedup(mean)} over {bar.label}{remarks}"),
    ]
    attributes = {name: value for name, value in bar.mean.attributes.items() if name != "value"}
    exact = bar.mean.attributes["value"]
    return element("a", *shapes, href=root + bar.mean.citation.url, data_value=exact, **attributes)
