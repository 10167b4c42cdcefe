"""`warpsmith program`: whole programs; this module analyses, its siblings `program_*` add their commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console

if TYPE_CHECKING:
    from warpsmith.program.process.program import Program

app = typer.Typer(
    help="Whole programs: where a step's time goes, what makes it faster.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

ProgramArgument = Annotated[str | None, typer.Argument(metavar="PROGRAM", help="A Python file or dotted module.")]
Arguments = Annotated[list[str] | None, typer.Argument(help="Of the program, after `--`.")]
Step = Annotated[str | None, typer.Option(help="The module-level callable that does one step.")]
Setup = Annotated[str | None, typer.Option(help="Called once before; its result goes to the step.")]
Seed = Annotated[int, typer.Option(help="Of random, numpy and torch.")]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds that starting, or one batch of steps, may take.")]
Json = Annotated[bool, typer.Option("--json", help="Print the record.")]


def resolve_program(
    where: str | None,
    step: str | None,
    setup: str | None = None,
    arguments: list[str] | None = None,
    command: str | None = None,
) -> Program:
    """The program that the arguments of a command name."""
    from warpsmith.program.process.program import resolve_step_program

    return resolve_step_program(where, step, setup=setup, args=arguments or (), command=command)


@app.command()
def analyze(
    program: ProgramArgument = None,
    arguments: Arguments = None,
    step: Step = None,
    setup: Setup = None,
    command: Annotated[
        str | None, typer.Option(help="A shell command that runs steps in Python, instead of a program.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps to trace; of a command, how many it runs if it marks none.")
    ] = None,
    seed: Seed = 0,
    timeout: Timeout = 600.0,
    as_json: Json = False,
) -> None:
    """Run a program's steps under the profiler: what bounds them, what to try, by Amdahl; kept as a record.

    Exit code 1 where a step returns NaN or infinity; the analysis is kept all the same.
    """
    from warpsmith import project
    from warpsmith.program.analysis import analysis_store, analysis_text, analyzer

    here = project.find_project()
    chosen = resolve_program(program, step, setup, arguments, command)
    analysis_store.check_analysis_writable(here, chosen)
    with console.progress() as tell:
        found = analyzer.analyze_program(here, chosen, tell, steps=steps, seed=seed, timeout=timeout)
    kept = analysis_store.write_analysis(here, chosen, found)
    console.out_json(found) if as_json else console.out(analysis_text.format_analysis(found))
    console.tell(f"Record: {here.relative(kept)}")
    if found.broken:
        raise typer.Exit(1)


def register(root: typer.Typer) -> None:
    """Add the group."""
    root.add_typer(app, name="program")
