"""`warpsmith map`: time accepted versions at many shapes, and keep which of them runs at which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.cli.options import Json, Target
from warpsmith.errors import MissingInput, Misuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.lab.performance_map.measure import MapRequest
    from warpsmith.lab.performance_map.models import PerformanceMap
    from warpsmith.project import Project
    from warpsmith.use.choice import BestVersion


def map_command(
    op: Annotated[str, typer.Argument(help="Operator.")],
    versions: Annotated[
        str,
        typer.Option(
            metavar="VERSION,VERSION...",
            help="Accepted versions to time, such as `triton/v7,cuda/v3`; by default the best ones and the latest"
            " before them, up to six.",
        ),
    ] = "",
    shapes: Annotated[
        int,
        typer.Option(
            min=2, max=64, help="Shapes in all: the timed workloads, each --size, then a grid up to this."
        ),
    ] = 20,
    sizes: Annotated[
        list[str] | None,
        typer.Option(
            "--size",
            metavar="AXIS=N[,AXIS=N...][:DTYPE]",
            help="Time at this size too, which no workload has; repeatable.",
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, help="Wall time; a shape that runs is finished.")] = 120,
    target: Target = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the last map of the target; measure nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Map accepted versions over shapes: time all at each, and let `best()` run the one shown faster there.

    The best single version runs wherever no other was shown faster in two timings, the second in fresh processes
    and corrected for the number of shapes. The map holds on this machine alone. Exit code 1: fewer than two
    versions are correct at every shape; 4: the machine lacks something.
    """
    from warpsmith.lab.machine import hardware
    from warpsmith.project import find_project
    from warpsmith.use import choice

    project = find_project()
    owner = choice.find_owning_project(op)
    device = target or hardware.require_local_target(project).id
    if show:
        if versions or sizes:
            raise Misuse("--show prints a map that was measured; omit --versions and --size.")
        _show_map(project, owner, op, device, as_json)
        return
    request = _request(project, owner, op, device, versions, shapes, sizes or (), seconds)
    _measure_map(project, request, as_json)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("map")(map_command)


def _show_map(project: Project, owner: Project, op: str, target: str, as_json: bool) -> None:
    from warpsmith.errors import CorruptRecord
    from warpsmith.lab.performance_map import store
    from warpsmith.reporting.performance_map import page

    paths = store.list_map_records(project, op, target) or store.list_map_records(owner, op, target)
    if not paths:
        raise MissingInput(f"{op} has no map on `{target}` yet; `warpsmith map {op}` makes one.")
    record = store.read_map(paths[-1])
    if isinstance(record, str):
        raise CorruptRecord(f"{project.relative(paths[-1])} does not validate: {record}; remove its folder.")
    if as_json:
        console.out_json(record)
        return
    lines = page.MapLines([v.solution for v in record.versions], [cell.workload for cell in record.cells])
    console.out(lines.header())
    for cell in record.cells:
        console.out(lines.line(cell.workload, page.first_times(cell)))
    _print_result(record, project.relative(paths[-1].parent))


def _request(
    project: Project,
    owner: Project,
    op: str,
    target: str,
    names: str,
    shapes: int,
    sizes: Sequence[str],
    seconds: float,
) -> MapRequest:
    """Return the request; raise before anything is measured where something is wrong."""
    from warpsmith.lab.calibration import measurement
    from warpsmith.lab.machine import hardware
    from warpsmith.lab.operator import definition_file
    from warpsmith.lab.performance_map import grid
    from warpsmith.lab.performance_map.measure import MapRequest
    from warpsmith.lab.performance_map.models import MapVersion

    page = hardware.read_target_page(project, target)
    chosen = _choose_versions(owner, op, target, page.target.kind, names)
    file = definition_file.load_definition(owner.definition_path(op))
    workloads = grid.map_workloads(file, shapes, sizes)
    with console.progress() as tell:
        measured = measurement.ensure_measurement(project, page.target, tell)
    return MapRequest(
        file=file,
        page=page,
        measurement=measured,
        versions=[MapVersion(solution=v.solution, language=v.language, sha256=v.sha256) for v in chosen],
        sources={version.solution: version.file for version in chosen},
        workloads=workloads,
        hidden=tuple({owner.kernels, owner.devlog, project.kernels, project.devlog}),
        seconds=seconds,
    )


def _choose_versions(project: Project, op: str, target: str, kind: str, names: str) -> list[BestVersion]:
    """Return the accepted versions to time, today's best first.

    Raises:
        MissingInput: fewer than two were accepted.
        Misuse: a name is no version, or its version was not accepted under this definition.
    """
    from warpsmith import languages
    from warpsmith.campaign.history import solutions
    from warpsmith.lab.performance_map.measure import MOST_VERSIONS
    from warpsmith.use import choice

    accepted = {version.solution: version for version in choice.accepted_versions(project, op, target)}
    if len(accepted) < 2:
        count = "One version" if accepted else "No version"
        raise MissingInput(f"{count} of {op} was accepted on `{target}` under its definition; a map needs two.")
    requested = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    if not requested:
        runnable = [v for v in accepted.values() if not languages.get(v.language).missing(kind)]
        return (runnable if len(runnable) > 1 else [*accepted.values()])[:MOST_VERSIONS]
    for name in requested:
        if name in accepted:
            continue
        path = solutions.find_solution(project, op, name).path
        problem = "was not accepted under its definition as it is now" if path.is_file() else "does not exist"
        raise Misuse(f"{name} of {op} {problem} on `{target}`; accepted versions are: {', '.join(accepted)}.")
    if not 2 <= len(requested) <= MOST_VERSIONS:
        raise Misuse(f"--versions {names}: a map has from 2 to {MOST_VERSIONS} versions, not {len(requested)}.")
    return [version for name, version in accepted.items() if name in requested]


def _measure_map(project: Project, request: MapRequest, as_json: bool) -> None:
    from warpsmith.lab.performance_map.measure import MapMeasurement
    from warpsmith.lab.performance_map.models import Confirmation
    from warpsmith.reporting.performance_map import page

    op = request.file.definition.name
    names = [version.solution for version in request.versions]
    lines = page.MapLines(names, request.workloads)
    show = (lambda _: None) if as_json else console.out_line
    show(f"{op} on {request.page.target.id}: {', '.join(names)} at {len(request.workloads)} shapes")
    show(lines.header())
    measurement, reported = MapMeasurement(request), set[str]()
    for workload, result in measurement.run():
        if isinstance(result, Confirmation):
            faster = measurement.is_shown(result)
            show(page.confirmation_line(workload, result, measurement.best, faster=faster))
        else:
            show(lines.line(workload, result))
        for name in [name for name in measurement.failures if name not in reported]:
            show(f"{name}: {measurement.failures[name]}")
            reported.add(name)
    record = measurement.record()
    folder = page.write_map(project, record)
    if as_json:
        console.out_json(record)
    else:
        _print_result(record, project.relative(folder))


def _print_result(record: PerformanceMap, folder: str) -> None:
    from warpsmith.reporting.performance_map import page

    console.out("")
    for line in (*page.table_lines(record), *page.deviation_lines(record)):
        console.out(line)
    for note in record.notes:
        console.out(f"note: {note}")
    console.out(folder)
