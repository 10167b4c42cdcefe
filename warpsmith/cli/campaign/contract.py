"""`warpsmith contract` and `warpsmith brief`: the forms that agents answer in, and the designer's task."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.errors import MissingInput, Misuse

if TYPE_CHECKING:
    from warpsmith.driver.contracts.models import ProfileContract

Kind = Annotated[str, typer.Argument(help="profile, task, version or review.")]
Named = Annotated[
    str | None,
    typer.Option("--campaign", help="Its name; by default $WARPSMITH_CAMPAIGN, else the only unfinished one."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the contract as a model.")]


def check(
    kind: Kind,
    file: Annotated[Path | None, typer.Argument(help="The text; without it, stdin.")] = None,
    campaign: Named = None,
    as_json: Json = False,
) -> None:
    """Check a text against its contract; a profile's numbers against those that the lab kept, too."""
    from warpsmith.driver.contracts import registry as contracts

    text = _text(file)
    found = contracts.problems(kind, text)
    if not found:
        from warpsmith.driver.contracts.models import ProfileContract

        contract = contracts.parse(kind, text)
        found = _strange(contract, campaign) if isinstance(contract, ProfileContract) else []
    if found:
        sys.stderr.write("".join(f"{problem}\n" for problem in found))
        count = "one problem" if len(found) == 1 else f"{len(found)} problems"
        form = f"`warpsmith contract show {kind}` prints the form"
        raise Misuse(f"The {kind} does not fit its contract: {count}; mend what is named, {form}.")
    if as_json:
        console.out_json(contract)
    else:
        console.out(f"The {kind} fits its contract.")


def show(kind: Kind) -> None:
    """Print how to write a contract, with an example."""
    from warpsmith.driver.contracts import registry as contracts

    console.out(contracts.shown(kind))


def brief(campaign: Named = None, as_json: Json = False) -> None:
    """Print the designer's task in the open round."""
    from warpsmith import project
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import state
    from warpsmith.driver.brief import brief as put_together
    from warpsmith.driver.contracts import registry as contracts

    task = put_together(state.read(store.find(project.find(), campaign)))
    console.out_json(task) if as_json else console.out(contracts.render(task))


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    group = typer.Typer(
        name="contract", help="The forms that agents answer in.", no_args_is_help=True, rich_markup_mode=None
    )
    group.command()(check)
    group.command()(show)
    app.add_typer(group)
    app.command()(brief)


def _text(file: Path | None) -> str:
    if file is not None and not file.is_file():
        raise MissingInput(f"{file} does not exist; name the file that holds the contract.")
    try:
        data = sys.stdin.buffer.read() if file is None else file.read_bytes()
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Misuse(f"{file or 'stdin'} does not read: {error}; give UTF-8 text.") from error


def _strange(contract: ProfileContract, name: str | None) -> list[str]:
    """Numbers that are not the kept profile's; where none is kept, stderr says that nothing was compared."""
    from warpsmith import project
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import state
    from warpsmith.driver.contracts import kept as contract_kept

    try:
        campaign = store.find(project.find(), name)
    except Misuse as error:
        if name:
            raise
        return _not_compared(str(error))
    about = campaign.manifest
    if (contract.op, contract.target) != (about.target_op, about.target):
        return _not_compared(f"{campaign.name} is about {about.target_op} on {about.target}.")
    kept = contract_kept.kept(state.read(campaign), contract.version)
    if kept is None:
        return _not_compared(f"the open round of {campaign.name} keeps no profile of {contract.version}.")
    return contract_kept.strange(contract, kept[1])


def _not_compared(why: str) -> list[str]:
    console.tell(f"Numbers not compared: {why}")
    return []
