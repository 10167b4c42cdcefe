"""`warpsmith assembly`: what the compiler made of a version's kernels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.errors import Misuse

if TYPE_CHECKING:
    from warpsmith.profiling.assembly.models import Assembly
    from warpsmith.project import Project


def assembly(
    solution: Annotated[Path, typer.Argument(help="A version: kernels/<op>/<language>/v<N>.<ending>.")],
    arch: Annotated[
        str | None,
        typer.Option(help="`sm_90a` or `native`, and the like; by default the device at hand's."),
    ] = None,
    workload: Annotated[
        list[str] | None, typer.Option(help="A workload, may be repeated; by default the representative ones.")
    ] = None,
    diff: Annotated[Path | None, typer.Option(help="Another version: print only what differs from it.")] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Where the assembly goes; by default .warpsmith/assembly.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the model.")] = False,
) -> None:
    """Show what the compiler made of a version: instructions by kind, loop and line. No GPU is needed.

    PTX and SASS, or the CPU's code, are left in <keep>/<op>/<language>/<version>/.
    Exit code 1: it does not compile.
    """
    from warpsmith import project
    from warpsmith.cli.profiling import assembly_text
    from warpsmith.profiling.assembly import inspect as reader

    here = project.find()
    if diff is not None and _kin(here, solution) != _kin(here, diff):
        raise Misuse(f"{diff} is of another operator or language: give a version beside {solution}.")
    with console.progress() as tell:
        tell(f"{solution}: compiling")
        after = _examine(here, solution, arch, workload or [], keep)
        if diff is None:
            console.out_json(after) if as_json else assembly_text.show(after)
            return
        tell(f"{diff}: compiling")
        before = _examine(here, diff, after.arch, workload or [], keep)
    found = reader.compare(before, after)
    console.out_json(found) if as_json else assembly_text.show_diff(found)


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    app.command()(assembly)


def _kin(here: Project, path: Path) -> tuple[str, str]:
    from warpsmith.campaign import work

    op, found = work.located(here, path)
    return op, found.language


def _examine(here: Project, path: Path, arch: str | None, workloads: list[str], keep: Path | None) -> Assembly:
    from warpsmith import languages
    from warpsmith.campaign import work
    from warpsmith.lab.machine import hardware
    from warpsmith.lab.operator import definition_file
    from warpsmith.profiling.assembly import inspect as reader

    op, found = work.located(here, path)
    if arch is None and "gpu" in languages.get(found.language).targets:
        device = hardware.identify(here)
        arch = device.isa if device and device.kind == "gpu" else None
    definition = definition_file.load(here.definition(op)).definition
    return reader.examine(
        here, found.path, found.language, definition, arch=arch, workloads=workloads, keep=keep and keep.resolve()
    )
