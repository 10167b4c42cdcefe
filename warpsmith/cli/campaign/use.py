"""`warpsmith use`: the best version of an operator, its speedups, and the lines of Python that call it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.cli.options import Json

if TYPE_CHECKING:
    from warpsmith.project import Project
    from warpsmith.use.choice import BestVersion


def use_command(
    op: Annotated[str, typer.Argument(help="Operator.")],
    target: Annotated[str | None, typer.Option(help="Device kind; by default all.")] = None,
    as_json: Json = False,
) -> None:
    """Show the best accepted version of an operator for each device kind, and the Python that calls it."""
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
    if as_json:
        for version in versions.values():
            console.out(version.model_dump_json())
        return
    local = hardware.find_local_target(project)
    for version in versions.values():
        console.out("\n".join(_lines(find_project(), version)))
    if local is None or local.id not in versions:
        console.out(
            f"this machine: {local.id if local else 'a GPU without a hardware page'}; it runs the reference"
        )
    console.out(f'\nfrom warpsmith import best\n{op} = best("{op}")')


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
