"""The command's entry: the groups put together, and errors turned into one sentence and an exit code."""

from __future__ import annotations

import copy
import errno
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from warpsmith.cli import backup, hook, knowledge, listing, repo, schema
from warpsmith.cli.campaign import contract, new, optimize, report, route, use
from warpsmith.cli.campaign import rounds as campaign
from warpsmith.cli.lab import doctor, evidence, hardware, race, redteam, tune
from warpsmith.cli.lab import judge as lab
from warpsmith.cli.profiling import assembly, profile
from warpsmith.cli.program import analyze as program
from warpsmith.cli.program import extract as program_extract
from warpsmith.cli.program import graph
from warpsmith.cli.program import trial as program_trial
from warpsmith.errors import MachineLacks, WarpsmithError

_NOT_OURS = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
}
"""What a file system refuses a user; any other `OSError` is a mistake of ours, and is not hidden."""

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
listing.summarize(app)


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
        _end(error)
    except OSError as error:
        if error.errno not in _NOT_OURS:
            raise
        _end(_refused(error))


def _refused(error: OSError) -> MachineLacks:
    """What the file system refused; an unfinished file, whose name nobody knows, stands for its folder."""
    from warpsmith.files import TEMPORARY

    path = Path(str(error.filename)) if error.filename else Path("What is to be written")
    shown = path.parent if path.name.startswith(TEMPORARY) else path
    return MachineLacks(
        f"{shown}: {error.strerror}; what was kept before stays: mend that, then run the command again."
    )


def _end(error: WarpsmithError) -> NoReturn:
    sys.stderr.write(f"warpsmith: {error}\n")
    sys.exit(error.exit_code)
