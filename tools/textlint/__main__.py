"""`python -m tools.textlint [ROOT]`: prints findings and a line of counts; exit code 1 where there are any."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tools.textlint.blocks import compiler
from tools.textlint.rules import lint
from tools.textlint.shell import calls
from tools.textlint.tree import PLUGIN, Tree
from tools.textlint.uses import uses


def main(
    root: Annotated[
        Path, typer.Argument(exists=True, file_okay=False, help="The repository; by default this one.")
    ] = Path(__file__).parents[2],
) -> None:
    """Check the texts of the plugin: what a reader, Claude Code or a model would trip over."""
    tree = Tree(root.resolve())
    found = lint(tree)
    for finding in found:
        typer.echo(finding)
    if compiler() is None:
        typer.echo("No C++ compiler: C++ blocks were not compiled.", err=True)
    typer.echo(f"textlint: {len(found)} findings; {counts(tree)}")
    raise typer.Exit(bool(found))


def counts(tree: Tree) -> str:
    """How much was looked at, so that a check of nothing does not pass for a clean one."""
    links = sum(len(page.links) for page in tree.pages)
    blocks = sum(len(page.blocks) for page in tree.pages)
    commands = sum(1 for use in uses(tree) for _ in calls(use.text, PLUGIN))
    return (
        f"{len(tree.pages)} pages, {len(tree.skills)} skills, {len(tree.agents)} agents, {links} links, "
        f"{commands} commands, {blocks} code blocks"
    )


if __name__ == "__main__":
    typer.run(main)
