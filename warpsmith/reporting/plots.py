"""Plots as SVG: trend, roofline of the best version, calibration. The same records give the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any

from warpsmith.campaign.calibration import Calibration, calibrate_by_category
from warpsmith.core.campaign import RoundRecord
from warpsmith.core.evaluation import REFERENCE, Aggregate, Evaluation, Timing, Verdict
from warpsmith.reporting import facts
from warpsmith.reporting.format import bandwidth, plain, rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_MARKERS = {
    Verdict.ACCEPT: ("o", "#1b7f4d"),
    Verdict.ACCEPT_WITH_NOTE: ("s", "#b38600"),
    Verdict.UNTIMED: ("d", "#6b6b6b"),
    Verdict.ROLLBACK: ("x", "#b3261e"),
    Verdict.INVALID: ("+", "#6b6b6b"),
}
_STYLE: dict[str, Any] = {
    "svg.hashsalt": "warpsmith",
    "svg.fonttype": "none",
    "text.parse_math": False,  # a workload's name may contain a dollar sign
    "font.family": "DejaVu Sans",  # comes with matplotlib
}
_SHAPES = "osD^vP*Xph"
"""One marker for each category of change; colors alone do not distinguish ten of them."""
_SAME_CEILING = 0.01
"""Relative difference below which two ceilings are drawn as one line."""


def plots_unavailable() -> str:
    """Return why plots cannot be drawn on this machine; empty if they can."""
    return "" if find_spec("matplotlib") else "matplotlib is not installed (it comes with the extra `plots`)"


def trend_plot(rounds: Sequence[RoundRecord]) -> bytes:
    """Draw the speedup over the reference by round, with intervals and the verdict as the marker."""
    return render_svg(lambda axes: _draw_trend(axes, rounds))


def roofline_plot(evaluation: Evaluation) -> bytes:
    """Draw the achieved rate over intensity for every timed workload, under the lab's ceilings."""
    return render_svg(lambda axes: _draw_roofline(axes, evaluation))


def calibration_plot(predictions: Calibration) -> bytes:
    """Draw measured over predicted gain, one point for each round; dotted lines mark a factor of two."""
    return render_svg(lambda axes: _draw_calibration(axes, predictions))


def _draw_calibration(axes: Axes, predictions: Calibration) -> None:
    for (category, part), shape in zip(calibrate_by_category(predictions).items(), _SHAPES, strict=False):
        points = [(100 * p.predicted, 100 * p.measured) for p in part.predictions]
        axes.plot(*zip(*points, strict=True), shape, label=category)
    top = 125 * max([0.1, *(max(p.predicted, p.measured) for p in predictions.predictions)])
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
    means = [(r, r.evaluation.aggregate(REFERENCE)) for r in rounds]
    for verdict in Verdict:
        points = [(r.round, a) for r, a in means if a is not None and r.verdict is verdict]
        if points:
            _points(axes, verdict, [number for number, _ in points], [aggregate for _, aggregate in points])
    for record, aggregate in means:
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
        axes.plot(intensity(timing), timing.rate, "o", label=f"{plain(name, 40)}: {timing.ceiling_share:.1%}")
    axes.set(xscale="log", yscale="log", xlabel="FLOPs per byte", ylabel="FLOP/s")
    label_log_axis(axes.xaxis, "{x:g}")
    label_log_axis(axes.yaxis, "{x:.0e}")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1.0))


def label_log_axis(axis: Axis, text: str) -> None:
    """Label a logarithmic axis in plain text at 1, 2 and 5 times each power of ten: math text is switched off."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(text)
    axis.set_minor_formatter(NullFormatter())


def _points(axes: Axes, verdict: Verdict, numbers: list[int], means: list[Aggregate]) -> None:
    marker, color = _MARKERS[verdict]
    speedups = [aggregate.speedup for aggregate in means]
    # An interval of medians can miss the mean slightly; an error bar cannot be negative.
    below = [max(0.0, a.speedup - a.interval.low) for a in means]
    above = [max(0.0, a.interval.high - a.speedup) for a in means]
    axes.errorbar(
        numbers,
        speedups,
        (below, above),
        fmt=marker,
        color=color,
        capsize=3,
        label=verdict.value,
        linestyle="none",
    )


def _ceilings(axes: Axes, timings: list[Timing]) -> None:
    slope, flat = ceiling_lines(timings)
    low, high = min(map(intensity, timings)) / 4, max(map(intensity, timings)) * 4
    top = max(flat, default=slope * high)
    end = min(high, top / slope)
    axes.plot((low, end), (low * slope, end * slope), color="black", label=f"bytes: {bandwidth(slope)}")
    for ceiling in flat:
        axes.plot((ceiling / slope, high), (ceiling, ceiling), color="black", label=f"operations: {rate(ceiling)}")


def ceiling_lines(timings: Sequence[Timing]) -> tuple[float, list[float]]:
    """Return the bandwidth of the diagonal in bytes per second, and the rate of each flat ceiling in FLOP/s.

    Each record has its own ceiling: the rate at the floor time. Workloads under the memory ceiling are on the
    steepest of the diagonals; the others are flat lines.
    """
    rates = [(intensity(timing), timing.rate / timing.ceiling_share) for timing in timings]
    slope = max(ceiling / flops for flops, ceiling in rates)
    flat: list[float] = []
    for flops, ceiling in sorted(rates):
        if ceiling < slope * flops * (1 - _SAME_CEILING) and all(
            abs(ceiling / f - 1) > _SAME_CEILING for f in flat
        ):
            flat.append(ceiling)
    return slope, flat


def intensity(timing: Timing) -> float:
    """Return the operations per byte of a workload."""
    return timing.rate / timing.bandwidth


def render_svg(draw: Callable[[Axes], None], height: float = 4) -> bytes:
    """Render a figure of 7 by `height` inches as SVG; the same records give the same bytes."""
    from matplotlib import style
    from matplotlib.figure import Figure

    buffer = BytesIO()
    # The default style first: a user's own settings must not change the bytes.
    with style.context(["default", _STYLE]):
        figure = Figure(figsize=(7, height), layout="constrained")
        draw(figure.subplots())
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()
