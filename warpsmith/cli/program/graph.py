"""`warpsmith graph`: whether a program's step can be a CUDA graph, and what stands in the way."""

from __future__ import annotations

from typing import Annotated

import typer

from warpsmith.cli import console
from warpsmith.cli.program.analyze import Arguments, Json, Setup, Step, Timeout, Where, resolve

app = typer.Typer(
    help="CUDA graphs: what of a program's step can be captured.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def _group() -> None:
    """CUDA graphs: what of a program's step can be captured."""


@app.command()
def check(
    program: Where = None,
    arguments: Arguments = None,
    step: Step = None,
    setup: Setup = None,
    steps: Annotated[int, typer.Option(min=2, help="Steps to watch, after two to warm up.")] = 4,
    run: Annotated[bool, typer.Option("--run/--no-run", help="Run steps; without, only read the source.")] = True,
    trial: Annotated[
        bool, typer.Option("--trial/--no-trial", help="On a GPU, try captures and replays, each in a process.")
    ] = True,
    timeout: Timeout = 600.0,
    as_json: Json = False,
) -> None:
    """Say what keeps a step from being captured, with file and line, and what can be captured of it.

    The source is read, steps are watched, and on a GPU captures are tried: the whole step, else its modules.
    Without a GPU the verdict is an expectation. No file of the program is changed.
    """
    from warpsmith import project
    from warpsmith.cli.program import graph_text
    from warpsmith.program.analysis import analyzer
    from warpsmith.program.capture import check as graph_check

    chosen = resolve(program, step, setup, arguments)
    log = analyzer.scratch(project.find(), chosen) / "graph.txt"
    with console.progress() as tell:
        found = graph_check.check(chosen, run=run, trial=trial, steps=steps, timeout=timeout, log=log, tell=tell)
    console.out_json(found) if as_json else graph_text.show(found)


def register(root: typer.Typer) -> None:
    """Add the group."""
    root.add_typer(app, name="graph")
