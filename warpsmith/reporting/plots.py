"""Plots as SVG, the same bytes for the same records: trend, roofline of the best version, calibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any

from warpsmith.campaign.calibration import Calibration, by_category
from warpsmith.core.campaign import RoundRecord
from warpsmith.core.evaluation import REFERENCE, Aggregate, Evaluation, Timing, Verdict
from warpsmith.reporting import facts
from warpsmith.reporting.format import bandwidth, plain, rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = {
    Verdict.ACCEPT: ("o", "#1b7f4d"),
    Verdict.ACCEPT_WITH_NOTE: ("s", "#b38600"),
    Verdict.ROLLBACK: ("x", "#b3261e"),
    Verdict.INVALID: ("+", "#6b6b6b"),
}
_STYLE: dict[str, Any] = {
    "svg.hashsalt": "warpsmith",
    "svg.fonttype": "none",
    "text.parse_math": False,  # a workload's name may hold a dollar sign
    "font.family": "DejaVu Sans",  # comes with matplotlib
}
_SHAPES = "osD^vP*Xph"
"""One marker a category of change: colours alone do not tell ten of them apart."""
_SAME = 0.01
"""Two ceilings that differ by less are drawn as one line."""


def missing() -> str:
    """Why plots cannot be drawn here; empty: they can."""
    return "" if find_spec("matplotlib") else "matplotlib is not installed (the extra `plots` brings it)"


def trend(rounds: Sequence[RoundRecord]) -> bytes:
    """Speedup over the reference by round, with intervals and the verdict as the marker."""
    return svg(lambda axes: _draw_trend(axes, rounds))


def roofline(evaluation: Evaluation) -> bytes:
    """Achieved rate over intensity at every timed workload, under the ceilings that the lab judged by."""
    return svg(lambda axes: _draw_roofline(axes, evaluation))


def calibration(found: Calibration) -> bytes:
    """Measured over predicted gain, one point a round; between the dotted lines it is within a factor of two."""
    return svg(lambda axes: _draw_calibration(axes, found))


def _draw_calibration(axes: Axes, found: Calibration) -> None:
    for (category, part), shape in zip(by_category(found).items(), _SHAPES, strict=False):
        points = [(100 * p.predicted, 100 * p.measured) for p in part.predictions]
        axes.plot(*zip(*points, strict=True), shape, label=category)
    top = 125 * max([0.1, *(max(p.predicted, p.measured) for p in found.predictions)])
    for slope, line in ((1.0, "-"), (0.5, ":"), (2.0, ":")):
        axes.plot((0, top), (0, slope * top), line, color="black", linewidth=0.8)
    axes.axhline(0, color="#cccccc", linewidth=0.8)
    # Linear up to 2 %, where gains are small or losses; logarithmic above.
    axes.set_xscale("symlog", linthresh=2)
    axes.set_yscale("symlog", linthresh=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set(xlabel="predicted gain, %", ylabel="measured gain, %")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small")


def _draw_trend(axes: Axes, rounds: Sequence[RoundRecord]) -> None:
    found = [(r, r.evaluation.aggregate(REFERENCE)) for r in rounds]
    for verdict in Verdict:
        chosen = [(r.round, a) for r, a in found if a is not None and r.verdict is verdict]
        if chosen:
            _points(axes, verdict, [number for number, _ in chosen], [aggregate for _, aggregate in chosen])
    for record, aggregate in found:
        if aggregate is None:
            axes.axvline(record.round, color="#cccccc", linestyle=":", linewidth=1)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set(xlabel="round (dotted: no result)", ylabel=f"speedup over {facts.side_name(REFERENCE)}")
    axes.set_xticks([record.round for record in rounds])
    if axes.get_legend_handles_labels()[0]:
        axes.legend()


def _draw_roofline(axes: Axes, evaluation: Evaluation) -> None:
    points = {name: t for name, t in evaluation.timed.items() if t.rate > 0 and t.bandwidth > 0}
    if points:
        _ceilings(axes, list(points.values()))
    for name, timing in points.items():
        axes.plot(_intensity(timing), timing.rate, "o", label=f"{plain(name, 40)}: {timing.ceiling_share:.1%}")
    axes.set(xscale="log", yscale="log", xlabel="FLOPs a byte", ylabel="FLOP/s")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small")


def _points(axes: Axes, verdict: Verdict, numbers: list[int], found: list[Aggregate]) -> None:
    marker, colour = _MARKERS[verdict]
    speedups = [aggregate.speedup for aggregate in found]
    # An interval of medians can miss the mean by a hair; an error bar cannot be negative.
    below = [max(0.0, a.speedup - a.interval.low) for a in found]
    above = [max(0.0, a.interval.high - a.speedup) for a in found]
    axes.errorbar(
        numbers,
        speedups,
        (below, above),
        fmt=marker,
        color=colour,
        capsize=3,
        label=verdict.value,
        linestyle="none",
    )


def _ceilings(axes: Axes, timings: list[Timing]) -> None:
    # Each record holds its own ceiling: the rate at the floor time. Workloads under the memory ceiling lie on
    # the steepest of the diagonals; the others are flat lines.
    rates = [(_intensity(timing), timing.rate / timing.ceiling_share) for timing in timings]
    slope = max(ceiling / intensity for intensity, ceiling in rates)
    low, high = min(i for i, _ in rates) / 4, max(i for i, _ in rates) * 4
    flat: list[float] = []
    for intensity, ceiling in sorted(rates):
        if ceiling < slope * intensity * (1 - _SAME) and all(abs(ceiling / f - 1) > _SAME for f in flat):
            flat.append(ceiling)
    top = max(flat, default=slope * high)
    end = min(high, top / slope)
    axes.plot((low, end), (low * slope, end * slope), color="black", label=f"bytes: {bandwidth(slope)}")
    for ceiling in flat:
        axes.plot((ceiling / slope, high), (ceiling, ceiling), color="black", label=f"operations: {rate(ceiling)}")


def _intensity(timing: Timing) -> float:
    return timing.rate / timing.bandwidth


def svg(draw: Callable[[Axes], None]) -> bytes:
    """A figure as SVG: the same bytes for the same records."""
    from matplotlib import style
    from matplotlib.figure import Figure

    buffer = BytesIO()
    # The default style first: a user's own settings must not change the bytes.
    with style.context(["default", _STYLE]):
        figure = Figure(figsize=(7, 4), layout="constrained")
        draw(figure.subplots())
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()
