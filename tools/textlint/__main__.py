"""Run `python -m tools.textlint [ROOT]`: print findings and counts; the exit code is 1 if there are findings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tools.textlint.blocks import cpp_compiler
from tools.textlint.rules import lint
from tools.textlint.shell import find_calls
from tools.textlint.tree import PLUGIN, Tree
from tools.textlint.uses import find_uses


def main(
    root: Annotated[
        Path, typer.Argument(exists=True, file_okay=False, help="Folder of the repository; default: this one.")
    ] = Path(__file__).parents[2],
) -> None:
    """Check the texts of the plugin and the documentation."""
    tree = Tree(root.resolve())
    findings = lint(tree)
    for finding in findings:
        typer.echo(finding)
    if cpp_compiler() is None:
        typer.echo("No C++ compiler: C++ blocks were not compiled.", err=True)
    typer.echo(f"textlint: {len(findings)} findings; {_counts(tree)}")
    raise typer.Exit(bool(findings))


def _counts(tree: Tree) -> str:
    """Return how much was checked, so that a check of nothing does not look like a clean one."""
    links = sum(len(page.links) for page in tree.pages)
    blocks = sum(len(page.blocks) for page in tree.pages)
    commands = sum(1 for use in find_uses(tree) for _ in find_calls(use.text, PLUGIN))
    return (
        f"{len(tree.pages)} pages, {len(tree.skills)} skills, {len(tree.agents)} agents, {links} links, "
        f"{commands} commands, {blocks} code blocks"
    )


if __name__ == "__main__":
    typer.run(main)
