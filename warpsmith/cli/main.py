"""The command's entry: the groups put together, and errors turned into one sentence and an exit code."""

from __future__ import annotations

import copy
import sys
from typing import Annotated

import typer

from warpsmith.cli import (
    assembly,
    backup,
    campaign,
    contract,
    doctor,
    evidence,
    graph,
    hardware,
    hook,
    knowledge,
    lab,
    new,
    optimize,
    profile,
    program,
    program_extract,
    program_trial,
    race,
    redteam,
    repo,
    report,
    route,
    schema,
    tune,
    use,
)
from warpsmith.errors import WarpsmithError

app = typer.Typer(
    name="warpsmith",
    help="Take a PyTorch operator to the limit of the hardware. The agent proposes, the lab decides.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(value: bool) -> None:
    if value:
        from warpsmith import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Take a PyTorch operator to the limit of the hardware. The agent proposes, the lab decides."""


for group in (
    new,
    campaign,
    contract,
    route,
    lab,
    tune,
    assembly,
    optimize,
    profile,
    program,
    program_trial,
    program_extract,
    graph,
    race,
    use,
    backup,
    redteam,
    repo,
    report,
    knowledge,
    evidence,
    hardware,
    doctor,
    schema,
    hook,
):
    group.register(app)


def _only(name: str) -> typer.Typer:
    """The application without every command but the called one: building each costs as much as running some."""
    called = [info for info in app.registered_commands if _name(info) == name]
    if not called:
        return app
    only = copy.copy(app)
    only.registered_commands, only.registered_groups = called, []
    return only


def _name(info: typer.models.CommandInfo) -> str:
    return info.name or (info.callback.__name__ if info.callback else "")


def main() -> None:
    """Run the command; exit codes are those of `warpsmith.errors`."""
    try:
        _only(sys.argv[1] if len(sys.argv) > 1 else "")()
    except WarpsmithError as error:
        sys.stderr.write(f"warpsmith: {error}\n")
        sys.exit(error.exit_code)
