"""A race as a table on a terminal, as a page with a plot, and on disk."""

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
from warpsmith.reporting.templating import fill

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import RenderableType

OURS = "solution"
"""The version that races, as records name its side."""

RECORD, PAGE, PLOT = "record.json", "race.md", "race.svg"
"""A race's files."""

_FOLDERS = "[0-9][0-9][0-9]-*"
_NEAR = " (near)"


class Row(NamedTuple):
    """One side at one workload, as text."""

    workload: str
    side: str
    eager: str
    eager_speedup: str
    graph: str
    graph_speedup: str
    ceiling: str
    joules: str
    result: str


HEAD = Row("workload", "side", "eager", "ours (eager)", "graph", "ours (graph)", "ceiling", "J a call", "result")


def write(project: Project, record: RaceRecord) -> Path:
    """Keep a race with its page and its plot, all at once; returns its folder, under `devlog/<op>/races/`."""
    races = project.devlog / record.definition / "races"
    numbers = [int(path.name[:3]) for path in races.glob(_FOLDERS)]
    folder = races / f"{max(numbers, default=0) + 1:03d}-{record.target}"
    files.publish({RECORD: record.model_dump_json(indent=2) + "\n", **_rendered(record)}, folder)
    return folder


def render(
    project: Project, op: str, struck: Mapping[str, str] | None = None, *, redraw: bool = True
) -> dict[Path, str | bytes]:
    """The page and the plot of every race of an operator as their records give them now, to be put on disk; a race
    whose record does not read keeps those that it has.

    Args:
        project: whose races.
        op: the operator.
        struck: by the hash of a version why a review took it out of the lineage.
        redraw: draw plots that are there too, slow as that is; a race's record stays as it is.
    """
    pages: dict[Path, str | bytes] = {}
    for path in sorted((project.devlog / op / "races").glob(f"{_FOLDERS}/{RECORD}")):
        with suppress(ValidationError):
            record = RaceRecord.model_validate_json(path.read_bytes())
            why = (struck or {}).get(record.provenance.solution_sha256, "")
            found = _rendered(record, why, draw=redraw or not path.with_name(PLOT).exists())
            pages |= {path.with_name(name): content for name, content in found.items()}
    return pages


def rows(record: RaceRecord) -> list[Row]:
    """Every side at every workload, then the geometric means."""
    found = [_row(record, result, side) for result in record.results for side in result.sides]
    return [*found, *_means(record)]


def page(record: RaceRecord, plots_missing: str = "", struck: str = "") -> str:
    """`race.md`.

    Args:
        record: the race.
        plots_missing: why there is no plot beside it; empty where there is one.
        struck: why a review took the version that raced out of the lineage; empty where none did.
    """
    columns = _columns(record)
    return fill(
        "race",
        race=record,
        head=_line(HEAD, columns),
        rules=format.Md("|".join(["---"] * len(columns))),
        rows=[_line(row, columns) for row in rows(record)],
        footnotes=footnotes(record),
        plot=PLOT,
        plots_missing=plots_missing,
        struck=struck,
    )


def table(record: RaceRecord, path: str | None = None) -> RenderableType:
    """The same on a terminal, with what a reader must know and where the record is."""
    columns = _columns(record)
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        shown.add_column(HEAD[column], no_wrap=HEAD[column] != HEAD.result)  # a long reason is wrapped
    for row in rows(record):
        # Never a bare string: rich would read markup in it.
        shown.add_row(*(Text(format.plain(row[column], 100)) for column in columns))
    below = footnotes(record)
    below += [f"missing: {name}: {how}" for name, how in record.absent.items()]
    below += [f"note: {note}" for note in record.notes]
    below += [path] if path else []
    return terminal.Wide(Group(shown, *(Text(format.plain(line, 300)) for line in below)))


def footnotes(record: RaceRecord) -> list[str]:
    """What the marks of sides mean, where any is marked, and what peers do otherwise than the operator."""
    sides = {side.side: side for result in record.results for side in result.sides}
    marked = [near.MEANING] if any(record.near(name) for name in sides) else []
    return marked + [f"{facts.side_name(name)}: {side.differs}" for name, side in sides.items() if side.differs]


def plot(record: RaceRecord) -> bytes:
    """How many times as fast the version is as each other side, by workload, with intervals."""
    return plots.svg(lambda axes: _draw(axes, record))


def mode(result: RaceResult) -> Mode:
    """What a workload's sides are compared by: CUDA graphs where there are any."""
    return "eager" if result.graph is None else "graph"


def _rendered(record: RaceRecord, struck: str = "", *, draw: bool = True) -> dict[str, str | bytes]:
    drawn = {PLOT: plot(record)} if draw and not plots.missing() else {}
    return {PAGE: page(record, plots.missing(), struck), **drawn}


def _row(record: RaceRecord, result: RaceResult, side: RaceSide) -> Row:
    name = record.solution if side.side == OURS else _named(side.side, side.near)
    if not side.timed:
        nothing = (format.ABSENT,) * 6
        return Row(result.workload, name, *nothing, f"{side.status}: {side.message}")
    eager, graph = (_against(result.timing(one), side.side) for one in ("eager", "graph"))
    main = _seconds(result.timing(mode(result)), side.side)
    share = result.eager.floor_seconds / main if main else None
    return Row(
        result.workload,
        name,
        format.seconds(_seconds(result.eager, side.side)),
        format.speedup(eager),
        format.seconds(_seconds(result.graph, side.side)),
        format.speedup(graph),
        format.percent(share),
        format.ABSENT if side.joules is None else format.digits(side.joules),
        _result(side),
    )


def _result(side: RaceSide) -> str:
    """How right a timed side is, and what its figures lack."""
    worst = format.share_of_bound(side.correctness.worst if side.correctness else None)
    said = [f"rounds otherwise: worst {worst} of its bound" if side.near else f"right, {worst} of the bound"]
    if side.uncaptured:
        said.append(f"no CUDA graph: {side.uncaptured}")
    if side.joules_mode == "eager":
        said.append("energy of eager calls")
    return "; ".join(said)


def _named(side: str, is_near: bool) -> str:
    return facts.side_name(side) + (_NEAR if is_near else "")


def _means(record: RaceRecord) -> Iterator[Row]:
    eager, graph = ({mean.against: mean for mean in record.aggregates.get(one, ())} for one in ("eager", "graph"))
    for side in dict.fromkeys((*eager, *graph)):
        means = (format.speedup(eager.get(side)), format.speedup(graph.get(side)))
        gap = format.ABSENT
        yield Row("geometric mean", _named(side, record.near(side)), gap, means[0], gap, means[1], gap, gap, gap)


def _line(row: Row, columns: Sequence[int]) -> Md:
    cells = (row[column] for column in columns)
    return Md(
        " | ".join(
            cell if isinstance(cell, Md) or cell == format.ABSENT else format.inline(cell) for cell in cells
        )
    )


def _columns(record: RaceRecord) -> list[int]:
    """The columns that hold something."""
    found = rows(record)
    return [at for at in range(len(HEAD)) if any(row[at] != format.ABSENT for row in found)]


def _against(timing: Timing | None, side: str) -> Comparison | None:
    return timing.against(side) if timing else None


def _seconds(timing: Timing | None, side: str) -> float | None:
    if timing is None or side == OURS:
        return timing.seconds if timing else None
    found = timing.against(side)
    return found.other_seconds if found else None


def _fill(record: RaceRecord, side: str) -> Literal["full", "none"]:
    """Hollow marks where a side rounds otherwise."""
    return "none" if record.near(side) else "full"


def _draw(axes: Axes, record: RaceRecord) -> None:
    names = list(dict.fromkeys(side.side for result in record.results for side in result.sides))
    for index, name in enumerate(name for name in names if name != OURS):
        found = [
            (at, comparison)
            for at, result in enumerate(record.results)
            if (comparison := _against(result.timing(mode(result)), name))
        ]
        if not found:
            continue
        offset = 0.12 * (index - (len(names) - 2) / 2)
        middle = [comparison.speedup for _, comparison in found]
        below = [max(0.0, comparison.speedup - comparison.interval.low) for _, comparison in found]
        above = [max(0.0, comparison.interval.high - comparison.speedup) for _, comparison in found]
        axes.errorbar(
            middle, [at + offset for at, _ in found], xerr=(below, above), fmt="o", capsize=3,
            label=_named(name, record.near(name)), linestyle="none", fillstyle=_fill(record, name),
        )  # fmt: skip
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(record.results)), [format.plain(result.workload, 40) for result in record.results])
    axes.invert_yaxis()
    footnote = "\n(near), hollow: rounds otherwise, see the page" if any(map(record.near, names)) else ""
    axes.set(xscale="log", xlabel=f"times as fast: {record.solution} over the other side{footnote}")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small")
