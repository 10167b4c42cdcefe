"""Lines, page and files of a map."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from warpsmith import files
from warpsmith.core.definition import Workload
from warpsmith.lab.performance_map import store
from warpsmith.lab.performance_map.models import Confirmation, MapCell, MapTime, PerformanceMap
from warpsmith.project import Project
from warpsmith.reporting import format, plots
from warpsmith.reporting.format import Md
from warpsmith.reporting.performance_map import picture
from warpsmith.reporting.templating import fill_template

_SHOWN_SHAPES = 4
"""Shapes that a short text names before it counts the others."""


class MapLines:
    """Lines of a measurement as text with columns of fixed width, each complete when it is printed."""

    def __init__(self, solutions: Sequence[str], workloads: Sequence[Workload]) -> None:
        self._solutions = solutions
        self._width = max(len("shape"), *(len(format.plain(workload.name, 60)) for workload in workloads))
        self._columns = [max(9, len(name)) for name in solutions]

    def header(self) -> str:
        """Return the names of the columns."""
        return self._line("shape", self._solutions, "fastest")

    def line(self, workload: Workload, times: Mapping[str, MapTime]) -> str:
        """Return the times of a shape in the first timing."""
        fastest = min(times.values(), key=lambda time: time.seconds).solution if times else format.ABSENT
        seconds = (format.seconds(times[name].seconds) if name in times else "failed" for name in self._solutions)
        return self._line(workload.name, seconds, fastest)

    def _line(self, name: str, cells: Iterator[str] | Sequence[str], last: str) -> str:
        columns = (cell.rjust(width) for cell, width in zip(cells, self._columns, strict=True))
        return "  ".join((format.plain(name, 60).ljust(self._width), *columns, last))


def first_times(cell: MapCell) -> dict[str, MapTime]:
    """Return the first timing of a shape by version."""
    return {time.solution: time for time in cell.times}


def confirmation_line(workload: Workload, confirmation: Confirmation, best: str, *, faster: bool) -> str:
    """Describe the second timing of a shape in one sentence."""
    figure = f"{format.factor(confirmation.speedup)} {format.interval(confirmation.interval)} as fast as {best}"
    consequence = (
        f"{confirmation.solution} runs there"
        if faster
        else f"not beyond the noise of one shape, so {best} runs there"
    )
    return f"{format.plain(workload.name, 60)}, again: {confirmation.solution} is {figure}; {consequence}."


def table_lines(record: PerformanceMap) -> Iterator[str]:
    """Yield the table: each version that runs with its shapes, the best single version last."""
    for version in record.used()[1:]:
        names = [cell.workload.name for cell in record.cells if cell.solution == version.solution]
        yield f"{version.solution} at {', '.join(names)}, and between them where all judged shapes agree"
    where = "everywhere else" if len(record.used()) > 1 else "at every shape"
    yield f"{record.best} {where}: {record.best_reason}"
    yield from (f"{version.solution} nowhere: {version.failed}" for version in record.versions if version.failed)


def deviation_lines(record: PerformanceMap) -> Iterator[str]:
    """Yield one sentence for each shape at which another version than the best single one runs."""
    for cell in record.deviations():
        second = cell.confirmation
        assert second is not None  # a record without it cannot be written
        seconds = f"{format.seconds(second.seconds)} against {format.seconds(second.best_seconds)}"
        figure = f"{format.factor(second.speedup)} {format.interval(second.interval)}"
        yield f"At {cell.workload.name} {cell.solution} takes {seconds} of {record.best}, {figure} as fast."


def one_line_table(record: PerformanceMap) -> str:
    """Return the table in one line: `cuda/v7 at 2048x4096-bf16; cuda/v8 at the other 17 of 18 shapes`."""
    parts = []
    for version in record.used()[1:]:
        names = [cell.workload.name for cell in record.cells if cell.solution == version.solution]
        more = f" and {len(names) - _SHOWN_SHAPES} more" if len(names) > _SHOWN_SHAPES else ""
        parts.append(f"{version.solution} at {', '.join(names[:_SHOWN_SHAPES])}{more}")
    count, of_all = sum(cell.solution == record.best for cell in record.cells), len(record.cells)
    others = f"the other {count} of {of_all} shapes" if parts else f"all {of_all} shapes"
    return "; ".join([*parts, f"{record.best} at {others}"])


def map_page(record: PerformanceMap) -> str:
    """Render the page of a map, `map.md`."""
    solutions = [version.solution for version in record.versions]
    head = ["shape", *solutions, "confirmed", "runs"]
    return fill_template(
        "map",
        map=record,
        head=Md(" | ".join(head)),
        rules=Md("|".join("---" for _ in head)),
        rows=[Md(" | ".join(_row(record, cell, solutions))) for cell in record.cells],
        table=list(table_lines(record)),
        deviations=list(deviation_lines(record)),
        floor=format.percent(record.floor),
        confidence=f"{100 * record.confidence:.2f} %",
        picture=store.PICTURE,
    )


def write_map(project: Project, record: PerformanceMap) -> Path:
    """Write a map with its page and picture atomically; return its folder under `devlog/<op>/maps/`."""
    folder = store.next_folder(project, record.definition, record.target)
    files.publish_folder({store.RECORD: record.model_dump_json(indent=2) + "\n", **_rendered(record)}, folder)
    return folder


def render_maps(project: Project, op: str, *, redraw: bool = True) -> dict[Path, str | bytes]:
    """Render the page and the picture of every map of an operator; a map with an invalid record keeps its own.

    Args:
        project: project of the maps.
        op: operator.
        redraw: draw existing pictures again, which is slow.
    """
    pages: dict[Path, str | bytes] = {}
    for path in store.list_map_records(project, op):
        record = store.read_map(path)
        if isinstance(record, PerformanceMap):
            rendered = _rendered(record, draw=redraw or not path.with_name(store.PICTURE).exists())
            pages |= {path.with_name(name): content for name, content in rendered.items()}
    return pages


def _rendered(record: PerformanceMap, *, draw: bool = True) -> dict[str, str | bytes]:
    pictures = {store.PICTURE: picture.draw_picture(record)} if draw and not plots.plots_unavailable() else {}
    return {store.PAGE: map_page(record), **pictures}


def _row(record: PerformanceMap, cell: MapCell, solutions: Sequence[str]) -> Iterator[str]:
    yield format.inline(cell.workload.name)
    for name in solutions:
        time = cell.time_of(name)
        over = f", {format.speedup(time.comparison)}" if time and time.comparison else ""
        yield f"{format.seconds(time.seconds)}{over}" if time else format.ABSENT
    second = cell.confirmation
    yield (
        f"{second.solution} {format.factor(second.speedup)} {format.interval(second.interval)}"
        if second
        else format.ABSENT
    )
    yield f"**{cell.solution}**" if cell.solution != record.best else cell.solution
