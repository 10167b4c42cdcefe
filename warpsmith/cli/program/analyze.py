"""`warpsmith program`: whole programs. This module analyzes; its siblings add the other commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.cli.options import Json

if TYPE_CHECKING:
    from warpsmith.program.process.program import Program

app = typer.Typer(
    help="Whole programs: where the time of a step goes, and what makes it faster.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

ProgramArgument = Annotated[str | None, typer.Argument(metavar="PROGRAM", help="A Python file or dotted module.")]
Arguments = Annotated[list[str] | None, typer.Argument(help="Arguments of the program, after `--`.")]
Step = Annotated[str | None, typer.Option(help="The module-level function that runs one step.")]
Setup = Annotated[
    str | None, typer.Option(help="Function that is called once first; its result is passed to the step.")
]
Seed = Annotated[int, typer.Option(help="Seed of random, numpy and torch.")]
Timeout = Annotated[
    float, typer.Option(min=0.1, help="Time limit in seconds of the start, and of one batch of steps.")
]


def resolve_program(
    path: str | None,
    step: str | None,
    setup: str | None = None,
    arguments: list[str] | None = None,
    command: str | None = None,
    writes: list[str] | None = None,
    *,
    verb: str = "analyze",
) -> Program:
    """Return the program that the arguments of a command name; `verb` is a command that takes scripts as they are.

    Raises:
        Misuse: they name none, or a script that would train where a step is wanted; nothing was imported.
        MissingInput: there is no such file or module.
    """
    from warpsmith.program.process.program import resolve_step_program
    from warpsmith.program.scripts import step_refusal

    if command is None:
        step_refusal.refuse_script(path, step, arguments or (), verb)
    return resolve_step_program(
        path, step, setup=setup, args=arguments or (), command=command, writes=writes or ()
    )  # fmt: skip


Command = Annotated[
    str | None, typer.Option(help="A shell command that runs a script as it is, instead of a program with a step.")
]
Writes = Annotated[
    list[str] | None, typer.Option(help="File or folder of the project that the command may write; repeatable.")
]


def require_script(program: Program) -> Program:
    """Return a program whose file can be read; raises Misuse for a command that names no script."""
    from warpsmith.errors import Misuse

    if program.command is not None and not program.path.is_file():
        raise Misuse(
            f"`{program.command}` names no Python file that exists; give the path of its script in the command."
        )
    return program


@app.command()
def analyze(
    program: ProgramArgument = None,
    arguments: Arguments = None,
    step: Step = None,
    setup: Setup = None,
    command: Command = None,
    writes: Writes = None,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Steps to trace; for a command, the number that it runs if it marks none."),
    ] = None,
    per_step: Annotated[
        str | None, typer.Option(help="Data that a step handles, for its throughput: `8192 tokens`.")
    ] = None,
    seed: Seed = 0,
    timeout: Timeout = 600.0,
    as_json: Json = False,
) -> None:
    """Run a program's steps under the profiler: bottleneck, lines that cost time, what to try, and a record.

    Exit code 1 if a step returns NaN or infinity; the analysis is recorded all the same.
    """
    from warpsmith import project
    from warpsmith.program.analysis import analysis_store, analysis_text, analyzer, throughput

    current_project = project.find_project()
    work = throughput.parse_work(per_step) if per_step else None
    resolved = resolve_program(program, step, setup, arguments, command, writes)
    analysis_store.check_analysis_writable(current_project, resolved)
    with console.progress() as tell:
        analysis_record = analyzer.analyze_program(
            current_project, resolved, tell, steps=steps, seed=seed, timeout=timeout, work=work
        )
    record = analysis_store.write_analysis(current_project, resolved, analysis_record)
    console.out_json(analysis_record) if as_json else console.out(analysis_text.format_analysis(analysis_record))
    console.tell(f"Record: {current_project.relative(record)}")
    if analysis_record.broken:
        raise typer.Exit(1)


def register(root: typer.Typer) -> None:
    """Add the group to the command line."""
    root.add_typer(app, name="program")
