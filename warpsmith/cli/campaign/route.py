"""`warpsmith route`: the agents that do a task, in order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli.options import Json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.driver.routing import Route
    from warpsmith.languages.base import Language

PLUGIN = "warpsmith"
NO_KERNEL, SOME_KERNEL = "none", "exists"


def route(
    task: Annotated[
        str | None,
        typer.Option(
            help="write, optimize, baseline, profile, review; for a whole program: program, cuda_graph, "
            "distributed, parallelism, or the id of a knowledge entry."
        ),
    ] = None,
    language: Annotated[str | None, typer.Option(help="As the user says it: Triton, CuTe DSL, CUDA C++.")] = None,
    target: Annotated[str | None, typer.Option(help="The kind of device: a hardware page's id.")] = None,
    arch: Annotated[str | None, typer.Option(help="The architecture instead: sm_90, gfx942, cpu.")] = None,
    kernel: Annotated[str, typer.Option(help="The existing kernel: its file, `exists`, or `none`.")] = NO_KERNEL,
    as_json: Json = False,
) -> None:
    """Name the specialist for a task, one line a step, in order."""
    from warpsmith import languages
    from warpsmith.cli import console
    from warpsmith.driver import routing

    every = languages.by_preference()
    request = routing.RouteRequest(
        task=_task(task) if task else None,
        language=routing.parse_language(language, every) if language else None,
        architecture=_architecture(target, arch, every),
        kernel=_kernel(kernel),
    )
    plan = routing.plan_route(request, _agents(), every)
    console.out(_json(plan) if as_json else _text(plan))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("route")(route)


def _task(text: str) -> str:
    from warpsmith import project
    from warpsmith.driver import routing
    from warpsmith.knowledge.catalog import Catalog

    if text in routing.TASKS:
        return text
    entries = Catalog.load(project.find_project()).entries.values()
    return routing.parse_task(
        text, {entry.id: entry.matter.program.specialist for entry in entries if entry.matter.program}
    )


def _architecture(target: str | None, arch: str | None, languages: Sequence[Language]) -> str | None:
    from warpsmith.driver import routing
    from warpsmith.errors import Misuse

    if target and arch:
        raise Misuse("Give --target or --arch, not both: a target has its architecture.")
    if target is None:
        return routing.parse_architecture(arch, languages) if arch else None
    from warpsmith import project
    from warpsmith.lab.machine import hardware
    from warpsmith.languages import support

    return support.architecture_of(hardware.read_target_page(project.find_project(), target).target)


def _kernel(text: str) -> str | None:
    """Return the existing kernel's language, of a version by its folder, of another file by its source."""
    from warpsmith import languages
    from warpsmith.core.text import VERSION
    from warpsmith.driver import routing
    from warpsmith.errors import MissingInput, Misuse

    if text == NO_KERNEL:
        return None
    if text == SOME_KERNEL:
        return routing.UNKNOWN_KERNEL
    path = Path(text)
    if not path.is_file():
        raise MissingInput(f"{path} does not exist; name the kernel's file, `{SOME_KERNEL}` or `{NO_KERNEL}`.")
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Misuse(f"{path} cannot be read: {error}; name a source file.") from error
    name = path.resolve().parent.name
    if re.fullmatch(VERSION, path.stem) and name in languages.names():
        return name
    language = languages.recognise(path.name, source)
    if language is None:
        raise Misuse(f"{path}: the kernel's language is not recognised; give --language and `--kernel exists`.")
    return language


def _agents() -> set[str]:
    from warpsmith.project import SHIPPED

    return {path.stem for path in (SHIPPED / "agents").glob("*.md")}


def _text(plan: Route) -> str:
    lines = []
    for number, step in enumerate(plan.steps, 1):
        if step.available:
            lines.append(f"{number}. {PLUGIN}:{step.agent}: {step.todo}")
        else:
            lines.append(f"{number}. not there yet, {step.agent}: {step.todo}. Instead: {step.fallback}")
    return "\n".join([*lines, *plan.notes])


def _json(plan: Route) -> str:
    import json
    from dataclasses import asdict

    return json.dumps(asdict(plan), indent=2)
