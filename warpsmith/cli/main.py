"""The command's entry: the groups put together, and errors turned into one sentence and an exit code."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from warpsmith.cli import campaign, hardware, knowledge, lab, new, optimize, report, schema
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


for group in (new, campaign, lab, optimize, report, knowledge, hardware, schema):
    group.register(app)


def main() -> None:
    """Run the command; exit codes are those of `warpsmith.errors`."""
    try:
        app()
    except WarpsmithError as error:
        sys.stderr.write(f"warpsmith: {error}\n")
        sys.exit(error.exit_code)
