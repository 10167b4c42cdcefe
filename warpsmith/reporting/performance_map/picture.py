"""Picture of a map: which version runs at which sizes, and how much faster it is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from warpsmith.core.evaluation import Interval
from warpsmith.lab.performance_map.models import MapCell, PerformanceMap
from warpsmith.reporting import format, plots
from warpsmith.use.shape_table import agreeing_boxes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLORS = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860")
"""One color for each version, in the order of the record."""

_MARKERS = "so^DvP"
"""One marker for each version: colors alone do not tell them apart for everyone."""


def draw_picture(record: PerformanceMap) -> bytes:
    """Draw a map as SVG: over two axes as a plane, over one as lines, else one row for each shape."""
    cells = _largest_kind(record)
    axes = varying_axes(cells)
    if len(axes) == 2:
        return plots.render_svg(lambda plot: _draw_plane(plot, record, cells, axes), 5)
    if len(axes) == 1:
        return plots.render_svg(lambda plot: _draw_lines(plot, record, cells, axes[0]))
    return plots.render_svg(lambda plot: _draw_rows(plot, record), 1.5 + 0.3 * len(record.cells))


def varying_axes(cells: Sequence[MapCell]) -> list[str]:
    """Return the axes that have more than one size in the cells."""
    return [name for name in cells[0].workload.axes if len({cell.workload.axes[name] for cell in cells}) > 1]


def _largest_kind(record: PerformanceMap) -> list[MapCell]:
    """Return the cells of the type and distribution that most of them have."""
    counts = Counter((cell.workload.dtype, cell.workload.distribution) for cell in record.cells)
    kind = counts.most_common(1)[0][0]
    return [cell for cell in record.cells if (cell.workload.dtype, cell.workload.distribution) == kind]


def _draw_plane(plot: Axes, record: PerformanceMap, cells: Sequence[MapCell], axes: Sequence[str]) -> None:
    from matplotlib.patches import Rectangle

    points = {tuple(cell.workload.axes[axis] for axis in axes): cell.solution for cell in cells}
    styles = _styles(record)
    for box in agreeing_boxes(points):
        (left, bottom), (right, top) = box.least, box.most
        plot.add_patch(
            Rectangle((left, bottom), right - left, top - bottom, facecolor=styles[box.solution][0], alpha=0.1,
                      linewidth=0)
        )  # fmt: skip
    for name, (color, marker) in styles.items():
        chosen = [key for key, solution in points.items() if solution == name]
        if chosen:
            plot.plot(*zip(*chosen, strict=True), marker, color=color, markersize=9, linestyle="none",
                      label=f"{name} runs")  # fmt: skip
    for cell in cells:
        x, y = (cell.workload.axes[axis] for axis in axes)
        confirmed = cell.solution != record.best
        plot.annotate(
            _gain_text(record, cell), (x, y), (0, 8), textcoords="offset points", ha="center", fontsize=7,
            color="black" if confirmed else "#888888", weight="bold" if confirmed else "normal",
        )  # fmt: skip
    plot.set(xscale="log", yscale="log", ylabel=axes[1], title=_title(record, cells),
             xlabel=f"{axes[0]}\nbold: confirmed; gray: the fastest other version, first timing")  # fmt: skip
    plot.margins(0.12, 0.12)
    _label_sizes(plot, points)
    plot.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1.0))


def _label_sizes(plot: Axes, points: Iterable[tuple[int, ...]]) -> None:
    """Label both axes at judged sizes alone, without those that would overlap."""
    from matplotlib.ticker import NullLocator

    for axis, index in ((plot.xaxis, 0), (plot.yaxis, 1)):
        ticks: list[int] = []
        for size in sorted({key[index] for key in points}):
            if not ticks or size > 1.5 * ticks[-1]:
                ticks.append(size)
        axis.set_ticks(ticks, [str(size) for size in ticks], fontsize=8, rotation=0 if index else 45)
        axis.set_minor_locator(NullLocator())


def _draw_lines(plot: Axes, record: PerformanceMap, cells: Sequence[MapCell], axis: str) -> None:
    ordered = sorted(cells, key=lambda cell: cell.workload.axes[axis])
    for name, (color, marker) in _styles(record).items():
        if name == record.best:
            continue
        points = [(cell.workload.axes[axis], gain) for cell in ordered if (gain := _gain(cell, name))]
        if not points:
            continue
        sizes, middle = [size for size, _ in points], [gain[0] for _, gain in points]
        plot.errorbar(sizes, middle, _bars([gain for _, gain in points]), fmt=f"{marker}-", color=color, capsize=3,
                      fillstyle="none", label=name)  # fmt: skip
        runs = [(cell.workload.axes[axis], gain[0]) for cell in ordered
                if cell.solution == name and (gain := _gain(cell, name))]  # fmt: skip
        if runs:
            plot.plot(*zip(*runs, strict=True), marker, color=color, linestyle="none", label=f"{name} runs")
    plot.axhline(1, color="black", linewidth=0.8)
    plot.set(xscale="log", yscale="log", xlabel=axis, ylabel=f"speedup over {record.best}",
             title=_title(record, cells))  # fmt: skip
    plots.label_log_axis(plot.xaxis, "{x:g}")
    plots.label_log_axis(plot.yaxis, "{x:g}x")
    plot.legend(fontsize="small")


def _draw_rows(plot: Axes, record: PerformanceMap) -> None:
    for name, (color, marker) in _styles(record).items():
        if name == record.best:
            continue
        points = [(row, gain) for row, cell in enumerate(record.cells) if (gain := _gain(cell, name))]
        rows, gains = [row for row, _ in points], [gain for _, gain in points]
        if rows:
            plot.errorbar([gain[0] for gain in gains], rows, xerr=_bars(gains), fmt=marker, color=color, capsize=3,
                          fillstyle="none", linestyle="none", label=name)  # fmt: skip
        runs = [(gain[0], row) for row, gain in points if record.cells[row].solution == name]
        if runs:
            plot.plot(*zip(*runs, strict=True), marker, color=color, linestyle="none", label=f"{name} runs")
    plot.axvline(1, color="black", linewidth=0.8)
    plot.set_yticks(range(len(record.cells)), [format.plain(cell.workload.name, 40) for cell in record.cells])
    plot.invert_yaxis()
    plot.set(xscale="log", xlabel=f"speedup over {record.best}", title=_title(record, ()))
    plots.label_log_axis(plot.xaxis, "{x:g}x")
    plot.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1.0))


def _title(record: PerformanceMap, cells: Sequence[MapCell]) -> str:
    dtype = f", {cells[0].workload.dtype}" if cells else ""
    return f"{record.definition} on {record.target}{dtype}: speedup over {record.best}"


def _styles(record: PerformanceMap) -> dict[str, tuple[str, str]]:
    return {
        version.solution: (_COLORS[index % len(_COLORS)], _MARKERS[index % len(_MARKERS)])
        for index, version in enumerate(record.versions)
    }


def _gain_text(record: PerformanceMap, cell: MapCell) -> str:
    """Return the confirmed speedup of the version that runs, else the largest one of any other in the first
    timing."""
    if cell.confirmation and cell.solution != record.best:
        return format.factor(cell.confirmation.speedup)
    others = [time.comparison.speedup for time in cell.times if time.comparison]
    return format.factor(max(others)) if others else ""


def _gain(cell: MapCell, name: str) -> tuple[float, Interval] | None:
    """Return a version's speedup over the best single one, from its confirmation if there is one."""
    if cell.confirmation and cell.confirmation.solution == name:
        return cell.confirmation.speedup, cell.confirmation.interval
    time = cell.time_of(name)
    return (time.comparison.speedup, time.comparison.interval) if time and time.comparison else None


def _bars(gains: Sequence[tuple[float, Interval]]) -> tuple[list[float], list[float]]:
    """Return the lengths of error bars; an interval of medians can miss the median slightly."""
    below = [max(0.0, middle - interval.low) for middle, interval in gains]
    above = [max(0.0, interval.high - middle) for middle, interval in gains]
    return below, above
