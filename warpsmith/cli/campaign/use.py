"""`warpsmith use`: the best version of an operator, its speedups, and the lines of Python that call it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.cli.options import Json

if TYPE_CHECKING:
    from warpsmith.core.hardware import Target
    from warpsmith.project import Project
    from warpsmith.use.choice import BestVersion
    from warpsmith.use.shape_choice import AppliedMap


def use_command(
    op: Annotated[str, typer.Argument(help="Operator.")],
    target: Annotated[str | None, typer.Option(help="Device kind; by default all.")] = None,
    as_json: Json = False,
) -> None:
    """Show the best accepted version of an operator for each device kind, and the Python that calls it.

    Where this machine has a map of the operator, the versions that run by shape are shown too.
    """
    import json

    from warpsmith.errors import MissingInput
    from warpsmith.lab.machine import hardware
    from warpsmith.project import find_project
    from warpsmith.use import choice

    project = choice.find_owning_project(op)
    versions = {
        name: version
        for name, version in choice.best_versions_by_target(project, op).items()
        if target in (None, name)
    }
    if not versions:
        request = f"{op} for `{target}`" if target else op
        raise MissingInput(f"No version of {request} was accepted yet; `warpsmith start {op}` starts a campaign.")
    local = hardware.find_local_target(project)
    applied = _find_map(project, op, local) if local and local.id in versions else None
    if as_json:
        for name, version in versions.items():
            by_shape = _map_facts(find_project(), applied) if applied and local and local.id == name else None
            console.out(json.dumps(version.model_dump(mode="json") | ({"map": by_shape} if by_shape else {})))
        return
    for name, version in versions.items():
        console.out("\n".join(_lines(find_project(), version)))
        if applied and local and local.id == name:
            console.out("\n".join(_map_lines(find_project(), applied)))
    if local is None or local.id not in versions:
        console.out(
            f"this machine: {local.id if local else 'a GPU without a hardware page'}; it runs the reference"
        )
    console.out(f'\nfrom warpsmith import best\n{op} = best("{op}")')


def _find_map(project: Project, op: str, target: Target) -> AppliedMap | None:
    from warpsmith.use import choice, shape_choice

    return shape_choice.find_map(project, op, target, choice.versions_for_target(project, op, target))


def _map_lines(project: Project, applied: AppliedMap) -> list[str]:
    from warpsmith.reporting.performance_map import page

    path = project.relative(applied.path)
    if applied.obstacle:
        op = applied.record.definition
        return [f"  map: {path} does not apply here: {applied.obstacle}; `warpsmith map {op}` makes a new one"]
    return [f"  by shape: {page.one_line_table(applied.record)}", f"  map: {path}"]


def _map_facts(project: Project, applied: AppliedMap) -> dict[str, object]:
    cells = {} if applied.obstacle else {cell.workload.name: cell.solution for cell in applied.record.cells}
    return {"record": project.relative(applied.path), "obstacle": applied.obstacle, "best": applied.record.best,
            "shapes": cells}  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("use")(use_command)


def _lines(project: Project, version: BestVersion) -> list[str]:
    from warpsmith.reporting import facts, format

    lines = [
        f"{version.target}: {version.solution} on {version.device}",
        f"  file: {project.relative(version.file)}",
    ]
    for mean in version.speedups:
        lines.append(f"  over {facts.side_name(mean.against)}: {format.speedup(mean)}")
    if version.other_toolchain:
        lines.append(f"  judged under {version.other_toolchain}")
    return [*lines, f"  record: {project.relative(version.record)}"]
