"""`warpsmith graph`: check whether a program's step can be a CUDA graph, and list what stands in the way."""

from __future__ import annotations

from typing import Annotated

import typer

from warpsmith.cli import console
from warpsmith.cli.options import Json
from warpsmith.cli.program.analyze import Arguments, ProgramArgument, Setup, Step, Timeout, resolve_program

app = typer.Typer(
    help="CUDA graphs: check what part of a program's step can be captured.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def _group() -> None:
    """CUDA graphs: check what part of a program's step can be captured."""


@app.command("check")
def check_capture(
    program: ProgramArgument = None,
    arguments: Arguments = None,
    step: Step = None,
    setup: Setup = None,
    steps: Annotated[int, typer.Option(min=2, help="Steps to watch, after two to warm up.")] = 4,
    capture: Annotated[
        bool, typer.Option("--capture/--no-capture", help="On a GPU, try captures and replays, each in a process.")
    ] = True,
    timeout: Timeout = 600.0,
    as_json: Json = False,
) -> None:
    """Show what keeps a step from being captured, with file and line, and what part of it can be captured.

    Steps are watched, and on a GPU captures are tried: the whole step, else its modules. Code that the watched
    steps do not reach is not checked. Without a GPU the verdict is an expectation. No file changes.
    """
    from warpsmith import project
    from warpsmith.cli.program import graph_format
    from warpsmith.program.analysis import analyzer
    from warpsmith.program.capture import check

    chosen = resolve_program(program, step, setup, arguments)
    log = analyzer.scratch_folder(project.find_project(), chosen) / "graph.txt"
    with console.progress() as tell:
        result = check.check_graph(chosen, attempt=capture, steps=steps, timeout=timeout, log=log, tell=tell)
    console.out_json(result) if as_json else graph_format.print_graph_check(result)


def register(root: typer.Typer) -> None:
    """Add the group to the command line."""
    root.add_typer(app, name="graph")
