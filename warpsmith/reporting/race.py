"""A race as a table on a terminal, as a page with a plot, and as a record on disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import ValidationError
from rich.console import Group
from rich.table import Table
from rich.text import Text

from warpsmith import files
from warpsmith.core.evaluation import Comparison, Timing
from warpsmith.core.race import Mode, RaceRecord, RaceResult, RaceSide
from warpsmith.lab.grading import near
from warpsmith.project import Project
from warpsmith.reporting import facts, format, plots, terminal
from warpsmith.reporting.format import Md
from warpsmith.reporting.templating import fill_template

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import RenderableType

OURS = "solution"
"""Name of the version's own side in records."""

RECORD, PAGE, PLOT = "record.json", "race.md", "race.svg"
"""File names in a race's folder."""

_FOLDERS = f"{files.NUMBERED}-*"
_NEAR_SUFFIX = " (near)"


class RaceRow(NamedTuple):
    """One row of the table as text: one side at one workload."""

    workload: str
    side: str
    eager: str
    eager_speedup: str
    host: str
    graph: str
    graph_speedup: str
    ceiling: str
    joules: str
    result: str


HEAD = RaceRow(
    "workload", "side", "eager", "ours (eager)", "host", "graph", "ours (graph)", "ceiling", "J a call", "result"
)


def write_race(project: Project, record: RaceRecord, folder: Path | None = None) -> Path:
    """Write a race with its page and, once it has ended, its plot; return its folder under `devlog/<op>/races/`.

    A new folder appears whole. In one that has a shorter record of the same race each file is replaced whole.
    """
    contents = {RECORD: record.model_dump_json(indent=2) + "\n", **_rendered(record, draw=not record.unraced)}
    if folder is None:
        races = project.devlog / record.definition / "races"
        folder = races / f"{files.next_number(races)}-{record.target}"
        files.publish_folder(contents, folder)
    else:
        for name, content in contents.items():
            files.write_file(folder / name, content)
    return folder


def render_races(
    project: Project, op: str, struck: Mapping[str, str] | None = None, *, redraw: bool = True
) -> dict[Path, str | bytes]:
    """Render the page and the plot of every race of an operator; a race with an invalid record keeps its own.

    Args:
        project: project of the races.
        op: operator.
        struck: reason why a review removed a version, by the version's hash.
        redraw: draw existing plots again, which is slow.
    """
    pages: dict[Path, str | bytes] = {}
    for path in sorted((project.devlog / op / "races").glob(f"{_FOLDERS}/{RECORD}"), key=files.number_order):
        with suppress(ValidationError):
            record = RaceRecord.model_validate_json(path.read_bytes())
            reason = (struck or {}).get(record.provenance.solution_sha256, "")
            rendered = _rendered(record, reason, draw=redraw or not path.with_name(PLOT).exists())
            pages |= {path.with_name(name): content for name, content in rendered.items()}
    return pages


def race_rows(record: RaceRecord) -> list[RaceRow]:
    """Return one row for every side at every workload, then the geometric means."""
    side_rows = [_row(record, result, side) for result in record.results for side in result.sides]
    return [*side_rows, *_means(record)]


def race_page(record: RaceRecord, struck: str = "") -> str:
    """Render `race.md`; `struck` is the reason why a review removed the raced version, or empty."""
    columns = _columns(record)
    return fill_template(
        "race",
        race=record,
        head=_line(HEAD, columns),
        rules=format.Md("|".join(["---"] * len(columns))),
        rows=[_line(row, columns) for row in race_rows(record)],
        footnotes=race_footnotes(record),
        notes=[*record.notes, *unraced_notes(record)],
        plot=PLOT,
        struck=struck,
    )


def race_table(record: RaceRecord, path: str | None = None) -> RenderableType:
    """Return the race as a terminal table, with footnotes and the record's path."""
    columns = _columns(record)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(HEAD[column], no_wrap=HEAD[column] != HEAD.result)  # a long reason is wrapped
    for row in race_rows(record):
        # Never a bare string: rich would interpret markup in it.
        table.add_row(*(Text(format.plain(row[column], 100)) for column in columns))
    footer = race_footnotes(record)
    footer += [f"missing: {name}: {reason}" for name, reason in record.absent.items()]
    footer += [f"note: {note}" for note in (*record.notes, *unraced_notes(record))]
    footer += [path] if path else []
    return terminal.Wide(Group(table, *(Text(format.plain(line, 300)) for line in footer)))


def unraced_notes(record: RaceRecord) -> list[str]:
    """Return a note about the workloads that a race was ended before, if there are any."""
    return [f"ended early, not raced: {', '.join(record.unraced)}"] if record.unraced else []


def race_footnotes(record: RaceRecord) -> list[str]:
    """Return the meaning of marks on sides, if any is marked, and the differences of peers from the operator."""
    sides = {side.side: side for result in record.results for side in result.sides}
    marked = [near.NEAR_MEANING] if any(record.near(name) for name in sides) else []
    if any(side.host_seconds is not None for side in sides.values()):
        marked.append("host: time until an eager call returns, while nothing waits for the device")
    return marked + [f"{facts.side_name(name)}: {side.differs}" for name, side in sides.items() if side.differs]


def race_plot(record: RaceRecord) -> bytes:
    """Draw the speedup of the version over each other side, by workload, with intervals."""
    return plots.render_svg(lambda axes: _draw(axes, record))


def comparison_mode(result: RaceResult) -> Mode:
    """Return the mode that a workload's sides are compared in: CUDA graphs if there are any."""
    return "eager" if result.graph is None else "graph"


def _rendered(record: RaceRecord, struck: str = "", *, draw: bool = True) -> dict[str, str | bytes]:
    plot_files = {PLOT: race_plot(record)} if draw and not plots.plots_unavailable() else {}
    return {PAGE: race_page(record, struck), **plot_files}


def _row(record: RaceRecord, result: RaceResult, side: RaceSide) -> RaceRow:
    name = record.solution if side.side == OURS else _side_label(side.side, side.near)
    if not side.timed:
        nothing = (format.ABSENT,) * 7
        return RaceRow(result.workload, name, *nothing, f"{side.status}: {side.message}")
    eager, graph = (_against(result.timing(timing_mode), side.side) for timing_mode in ("eager", "graph"))
    timing = result.timing(comparison_mode(result))
    seconds = _seconds(timing, side.side)
    share = timing.floor_seconds / seconds if timing and seconds else None
    return RaceRow(
        result.workload,
        name,
        format.seconds(_seconds(result.eager, side.side)),
        format.speedup(eager),
        format.ABSENT if side.host_seconds is None else format.seconds(side.host_seconds),
        format.seconds(_seconds(result.graph, side.side)),
        format.speedup(graph),
        format.percent(share),
        format.ABSENT if side.joules is None else format.digits(side.joules),
        _result(side),
    )


def _result(side: RaceSide) -> str:
    """Describe the accuracy of a timed side and the limits of its figures."""
    worst = format.share_of_bound(side.correctness.worst if side.correctness else None)
    notes = [f"rounds differently: worst {worst} of its bound" if side.near else f"correct, {worst} of the bound"]
    if side.uncaptured:
        notes.append(f"no CUDA graph: {side.uncaptured}")
    if side.joules_mode == "eager":
        notes.append("energy of eager calls")
    return "; ".join(notes)


def _side_label(side: str, is_near: bool) -> str:
    return facts.side_name(side) + (_NEAR_SUFFIX if is_near else "")


def _means(record: RaceRecord) -> Iterator[RaceRow]:
    eager, graph = (
        {mean.against: mean for mean in record.aggregates.get(timing_mode, ())}
        for timing_mode in ("eager", "graph")
    )
    name = facts.mean_name((*eager.values(), *graph.values()))
    for side in dict.fromkeys((*eager, *graph)):
        means = (format.speedup(eager.get(side)), format.speedup(graph.get(side)))
        gap = format.ABSENT
        yield RaceRow(
            name,
            _side_label(side, record.near(side)),
            gap,
            means[0],
            gap,
            gap,
            means[1],
            gap,
            gap,
            gap,
        )


def _line(row: RaceRow, columns: Sequence[int]) -> Md:
    cells = (row[column] for column in columns)
    return Md(
        " | ".join(
            cell if isinstance(cell, Md) or cell == format.ABSENT else format.inline(cell) for cell in cells
        )
    )


def _columns(record: RaceRecord) -> list[int]:
    """Return the columns that are not empty."""
    rows = race_rows(record)
    return [column for column in range(len(HEAD)) if any(row[column] != format.ABSENT for row in rows)]


def _against(timing: Timing | None, side: str) -> Comparison | None:
    return timing.against(side) if timing else None


def _seconds(timing: Timing | None, side: str) -> float | None:
    if timing is None or side == OURS:
        return timing.seconds if timing else None
    comparison = timing.against(side)
    return comparison.other_seconds if comparison else None


def _fill(record: RaceRecord, side: str) -> Literal["full", "none"]:
    """Return the fill style of a side's marks: hollow if it rounds differently."""
    return "none" if record.near(side) else "full"


def _draw(axes: Axes, record: RaceRecord) -> None:
    names = list(dict.fromkeys(side.side for result in record.results for side in result.sides))
    for index, name in enumerate(name for name in names if name != OURS):
        points = [
            (row, comparison)
            for row, result in enumerate(record.results)
            if (comparison := _against(result.timing(comparison_mode(result)), name))
        ]
        if not points:
            continue
        offset = 0.12 * (index - (len(names) - 2) / 2)
        middle = [comparison.speedup for _, comparison in points]
        below = [max(0.0, comparison.speedup - comparison.interval.low) for _, comparison in points]
        above = [max(0.0, comparison.interval.high - comparison.speedup) for _, comparison in points]
        axes.errorbar(
            middle, [row + offset for row, _ in points], xerr=(below, above), fmt="o", capsize=3,
            label=_side_label(name, record.near(name)), linestyle="none", fillstyle=_fill(record, name),
        )  # fmt: skip
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(record.results)), [format.plain(result.workload, 40) for result in record.results])
    axes.invert_yaxis()
    footnote = "\n(near), hollow: rounds differently, see the page" if any(map(record.near, names)) else ""
    axes.set(xscale="log", xlabel=f"speedup: {record.solution} over the other side{footnote}")
    plots.label_log_axis(axes.xaxis, "{x:g}x")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small")
