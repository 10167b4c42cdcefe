"""`warpsmith use`: where the best version of an operator is, what it is worth, and the lines that call it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console

if TYPE_CHECKING:
    from warpsmith.project import Project
    from warpsmith.use.choice import Chosen

Json = Annotated[bool, typer.Option("--json", help="One line of JSON for each target's best version.")]


def use(
    op: Annotated[str, typer.Argument(help="The operator.")],
    target: Annotated[str | None, typer.Option(help="The device kind; by default every one.")] = None,
    as_json: Json = False,
) -> None:
    """Show the best accepted version of an operator for each device, and the two lines of Python that call it."""
    from warpsmith import project
    from warpsmith.errors import MissingInput
    from warpsmith.lab.machine import hardware
    from warpsmith.use import choice

    here = choice.owner(op)
    found = {name: one for name, one in choice.every(here, op).items() if target in (None, name)}
    if not found:
        what = f"{op} for `{target}`" if target else op
        raise MissingInput(f"No version of {what} was accepted yet; `warpsmith start {op}` begins a campaign.")
    if as_json:
        for one in found.values():
            console.out(one.model_dump_json())
        return
    at_hand = hardware.identify(here)
    for one in found.values():
        console.out("\n".join(_lines(project.find(), one)))
    if at_hand is None or at_hand.id not in found:
        console.out(f"this machine: {at_hand.id if at_hand else 'a GPU without a page'}; the reference runs here")
    console.out(f'\nfrom warpsmith import best\n{op} = best("{op}")')


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(use)


def _lines(here: Project, one: Chosen) -> list[str]:
    from warpsmith.reporting import facts, format

    lines = [f"{one.target}: {one.solution} on {one.device}", f"  file: {here.relative(one.file)}"]
    for mean in one.speedups:
        lines.append(f"  over {facts.side_name(mean.against)}: {format.speedup(mean)}")
    return [*lines, f"  record: {here.relative(one.record)}"]
