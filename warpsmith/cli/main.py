"""Command line: all commands and groups, and errors as one sentence with an exit code."""

from __future__ import annotations

import copy
import importlib
import sys
import warnings
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, NoReturn

import typer

from warpsmith.cli import listing, skew
from warpsmith.errors import LeftOut, WarpsmithError

_READING = frozenset({
    "answer", "backups", "brief", "context", "doctor", "evidence check", "hardware", "hook", "knowledge", "next",
    "program next", "repo next", "repo status", "route", "schema", "status", "use",
})  # fmt: skip
"""Commands that write nothing, so that they remove nothing either."""

_app = typer.Typer(
    name="warpsmith",
    cls=listing.PanelGroup,
    help="Take a PyTorch operator to the limit of the hardware. The agent proposes, the lab decides.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(value: bool) -> None:
    if value:
        from warpsmith import __version__

        typer.echo(__version__)
        raise typer.Exit


@_app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Take a PyTorch operator to the limit of the hardware. The agent proposes, the lab decides."""


def load_app(name: str = "") -> typer.Typer:
    """Return the application with the named command or group alone; with all of them if none has that name.

    Importing and building each command costs time at every start.
    """
    modules = {command: texts.split() for panel in listing.PANELS.values() for command, texts in panel.items()}
    for module in modules.get(name) or [module for needed in modules.values() for module in needed]:
        _register(module)
    reduced = copy.copy(_app)
    if name in modules:
        reduced.registered_commands = [info for info in _app.registered_commands if info.name == name]
        reduced.registered_groups = [info for info in _app.registered_groups if info.name == name]
    listing.set_summaries(reduced)
    return reduced


@cache
def _register(module: str) -> None:
    """Add the commands of a module of `warpsmith.cli`."""
    importlib.import_module(f"warpsmith.cli.{module}").register(_app)


def main() -> None:
    """Run the command; `warpsmith.errors` lists the exit codes."""
    _tell_left_out_once()
    if sentence := skew.describe_skew():
        sys.stderr.write(f"warpsmith: {sentence}\n")
    _sweep(sys.argv[1:])
    try:
        load_app(sys.argv[1] if len(sys.argv) > 1 else "")()
    except WarpsmithError as error:
        _exit_with(error)
    except OSError as error:
        from warpsmith.system_faults import describe_os_error

        _exit_with(describe_os_error(error))


def _sweep(arguments: list[str]) -> None:
    """Remove what killed commands left and keep scratch files out of git, unless the command only reads; it never
    keeps the command from running."""
    if not arguments or arguments[0].startswith("-") or _READING & {arguments[0], " ".join(arguments[:2])}:
        return
    from warpsmith import files
    from warpsmith.project import find_project
    from warpsmith.temporary import sweep_abandoned

    project = None
    with suppress(WarpsmithError, OSError):
        project = find_project()
    with suppress(OSError):
        sweep_abandoned(project)
        if project and (project.scratch).is_dir():
            files.hide_from_git(project.scratch)


def _tell_left_out_once() -> None:
    """Name each file that does not read once, in a sentence, however many parts of a command meet it."""
    show = warnings.showwarning

    def tell(message: Warning | str, category: type[Warning], *location: Any, **more: Any) -> None:  # noqa: ANN401
        if issubclass(category, LeftOut):
            sys.stderr.write(f"warpsmith: {message}\n")
        else:
            show(message, category, *location, **more)

    warnings.simplefilter("once", LeftOut)
    warnings.showwarning = tell


def _exit_with(error: WarpsmithError) -> NoReturn:
    with suppress(OSError):  # the terminal may be gone
        sys.stderr.write(f"warpsmith: {error}\n")
    sys.exit(error.exit_code)
