"""`warpsmith assembly`: the machine code that the compiler made of a version's kernels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.cli.campaign.version import File, find_version
from warpsmith.cli.options import Json
from warpsmith.errors import Misuse

if TYPE_CHECKING:
    from warpsmith.core.arithmetic.occupancy import MultiprocessorLimits
    from warpsmith.profiling.assembly.models import Assembly
    from warpsmith.project import Project


def assembly_command(
    solution: File,
    arch: Annotated[
        str | None,
        typer.Option(help="Architecture such as `sm_90a`, `gfx942` or `native`; by default this machine's."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Device kind, the id of a hardware page, or an architecture as for --arch.")
    ] = None,
    workload: Annotated[
        list[str] | None, typer.Option(help="Workload, repeatable; by default the representative ones.")
    ] = None,
    diff: Annotated[Path | None, typer.Option(help="Other version; print only the differences.")] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Folder of the assembly files; by default .warpsmith/assembly.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the machine code of a version: instructions by kind, loop and line. No GPU is needed.

    The PTX and SASS, AMD's assembly or that of the CPU stay in <keep>/<op>/<language>/<version>/. Exit code 1:
    the version does not compile.
    """
    from warpsmith.cli.profiling import assembly_text
    from warpsmith.lab.machine import hardware
    from warpsmith.profiling.assembly import inspect as reader
    from warpsmith.project import find_project

    project = find_project()
    if arch and target:
        raise Misuse("--target sets the architecture; omit --arch or --target.")
    if target and target not in hardware.list_targets(project) and hardware.find_page_by_isa(project, target):
        arch, target = target, None
    if target:
        device = hardware.read_target_page(project, target).target
        arch = device.isa if device.kind == "gpu" else None
    if diff is not None and _operator_and_language(project, solution) != _operator_and_language(project, diff):
        raise Misuse(f"{diff} has another operator or language; give a version of the same folder as {solution}.")
    with console.progress() as tell:
        tell(f"{solution}: compiling")
        after = _inspect(project, solution, arch, workload or [], keep)
        if diff is None:
            limits = _find_limits(project, target, after.arch)
            console.out_json(after) if as_json else assembly_text.print_assembly(after, limits)
            return
        tell(f"{diff}: compiling")
        before = _inspect(project, diff, after.arch, workload or [], keep)
    changes = reader.compare_assemblies(before, after)
    console.out_json(changes) if as_json else assembly_text.print_assembly_diff(changes)


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    app.command("assembly")(assembly_command)


def _find_limits(project: Project, target: str | None, arch: str) -> MultiprocessorLimits | None:
    """Return the limits of a target, or of the first device of an architecture; None if no page has them."""
    from warpsmith.errors import UnknownFigure
    from warpsmith.lab.machine import hardware

    page = hardware.read_target_page(project, target) if target else hardware.find_page_by_isa(project, arch)
    try:
        return hardware.multiprocessor_limits(page) if page and page.target.kind == "gpu" else None
    except UnknownFigure:
        return None


def _operator_and_language(project: Project, path: Path) -> tuple[str, str]:
    op, version = find_version(project, path)
    return op, version.language


def _inspect(project: Project, path: Path, arch: str | None, workloads: list[str], keep: Path | None) -> Assembly:
    from warpsmith import languages
    from warpsmith.lab.machine import hardware
    from warpsmith.lab.operator import definition_file
    from warpsmith.profiling.assembly import inspect as reader

    op, version = find_version(project, path)
    if arch is None and "gpu" in languages.get(version.language).targets:
        device = hardware.find_local_target(project)
        arch = device.isa if device and device.kind == "gpu" else None
    definition = definition_file.load_definition(project.definition_path(op)).definition
    return reader.inspect_assembly(
        project,
        version.path,
        version.language,
        definition,
        arch=arch,
        workloads=workloads,
        keep=keep and keep.resolve(),
    )
