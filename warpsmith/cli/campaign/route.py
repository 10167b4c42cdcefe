"""`warpsmith route`: who does a task, in which order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from warpsmith.driver.routing import Route

PLUGIN = "warpsmith"
NO_KERNEL, SOME_KERNEL = "none", "exists"


def route(
    task: Annotated[
        str | None,
        typer.Option(
            help="write, optimize, baseline, profile, review; of a whole program: program, cuda_graph, "
            "distributed, parallelism, or the id of a knowledge entry."
        ),
    ] = None,
    language: Annotated[str | None, typer.Option(help="As the user says it: Triton, CuTe DSL, CUDA C++.")] = None,
    target: Annotated[str | None, typer.Option(help="The device kind: a hardware page's id.")] = None,
    arch: Annotated[str | None, typer.Option(help="The architecture instead: sm_90, gfx942, cpu.")] = None,
    kernel: Annotated[
        str, typer.Option(help="The kernel that there is: its file, `exists`, or `none`.")
    ] = NO_KERNEL,
    as_json: Annotated[bool, typer.Option("--json", help="Print the route as JSON.")] = False,
) -> None:
    """Say which specialist does a task, one line a step, in order."""
    from warpsmith import languages
    from warpsmith.cli import console
    from warpsmith.driver import routing

    request = routing.Request(
        task=_task(task) if task else None,
        language=routing.language(language) if language else None,
        architecture=_architecture(target, arch),
        kernel=_kernel(kernel),
    )
    found = routing.route(request, _agents(), languages.names())
    console.out(_json(found) if as_json else _text(found))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(route)


def _task(given: str) -> str:
    from warpsmith import project
    from warpsmith.driver import routing
    from warpsmith.knowledge.catalog import Catalog

    if given in routing.TASKS:
        return given
    entries = Catalog.load(project.find()).entries.values()
    return routing.task(given, [one.id for one in entries if one.matter.program])


def _architecture(target: str | None, arch: str | None) -> str | None:
    from warpsmith.driver import routing
    from warpsmith.errors import Misuse

    if target and arch:
        raise Misuse("Give --target or --arch, not both: a target has its architecture.")
    if target is None:
        return routing.architecture(arch) if arch else None
    from warpsmith import project
    from warpsmith.lab.machine import hardware

    page = hardware.read(project.find(), target).target
    return "cpu" if page.kind == "cpu" else routing.architecture(page.isa)


def _kernel(given: str) -> str | None:
    from warpsmith.driver import routing
    from warpsmith.errors import MissingInput, Misuse

    if given == NO_KERNEL:
        return None
    if given == SOME_KERNEL:
        return routing.UNKNOWN_KERNEL
    path = Path(given)
    if not path.is_file():
        raise MissingInput(f"{path} does not exist; name the kernel's file, `{SOME_KERNEL}` or `{NO_KERNEL}`.")
    try:
        return routing.written_in(path.resolve().as_posix(), path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise Misuse(f"{path} does not read: {error}; name a source file.") from error


def _agents() -> set[str]:
    from warpsmith.project import SHIPPED

    return {path.stem for path in (SHIPPED / "agents").glob("*.md")}


def _text(found: Route) -> str:
    lines = []
    for number, step in enumerate(found.steps, 1):
        told = f"{number}. {PLUGIN}:{step.agent}: {step.todo}"
        missing = f"{number}. not there yet, {step.agent}: {step.todo}. Instead: {step.instead}"
        lines.append(told if step.here else missing)
    return "\n".join([*lines, *found.notes])


def _json(found: Route) -> str:
    import json
    from dataclasses import asdict

    return json.dumps(asdict(found), indent=2)
