"""`warpsmith tune`: search the configurations that a version declares, and freeze the winners in a new version."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from warpsmith.cli.campaign.version import File


def tune(
    solution: File,
    seconds: Annotated[float, typer.Option(min=1, help="Wall time of the search; what runs is finished.")] = 120,
    target: Annotated[str | None, typer.Option(help="The device kind; by default the machine at hand's.")] = None,
    shapes: Annotated[
        Literal["representative", "full"], typer.Option(help="The workloads that it is tuned at.")
    ] = "representative",
    json: Annotated[bool, typer.Option("--json", help="Print the model as it stands on disk.")] = False,
) -> None:
    """Tune a version: the hand-picked configuration, a few for the slope, then a search in bounded time.

    The winners go into the next version's file, to be judged as any other; the version itself stays as it is.
    """
    from warpsmith import files, project
    from warpsmith.campaign import work
    from warpsmith.campaign.history import solutions
    from warpsmith.cli import console
    from warpsmith.cli.campaign import version
    from warpsmith.lab.tuning import tune as lab
    from warpsmith.reporting import terminal

    here = project.find()
    op, found = work.located(here, solution)
    manifest = version.alone(here, op, found, target)
    sets = work.EVERYTHING if shapes == "full" else ("representative",)
    with console.progress() as tell:
        tuning, text = lab.tune(work.request(here, manifest, found, tell, sets=sets), seconds)
    if text != found.path.read_text(encoding="utf-8"):
        there = solutions.on_disk(here, op, found.language)
        number = max(*there, solutions.next_version(here, op, found.language) - 1) + 1
        path = solutions.at(here, op, f"{found.language}/v{number}").path
        files.write(path, text)
        tuning = tuning.model_copy(update={"written": here.relative(path)})
    kept = here.root / ".warpsmith" / "tunings" / f"{op}-{found.language}-v{found.version}-{tuning.target}.json"
    files.write(kept, tuning.model_dump_json(indent=2) + "\n")
    if json:
        console.out_json(tuning)
        return
    console.stdout().print(terminal.tuning_table(tuning, here.relative(kept)))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(tune)
