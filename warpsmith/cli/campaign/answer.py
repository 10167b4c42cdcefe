"""`warpsmith answer` and `warpsmith brief`: the schema of an agent's answer, and the designer's task."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.cli.options import CampaignName, Json
from warpsmith.errors import MissingInput, Misuse

if TYPE_CHECKING:
    from warpsmith.driver.answers.models import ProfileAnswer

Kind = Annotated[str, typer.Argument(help="Kind of answer: profile, version or review.")]


def answer_check_command(
    kind: Kind,
    file: Annotated[Path | None, typer.Argument(help="File with the message; by default stdin.")] = None,
    campaign: CampaignName = None,
    as_json: Json = False,
) -> None:
    """Check an agent's answer against its schema, and the values of a profile against the kept profile."""
    from warpsmith.driver.answers import message

    text = _read_message(file)
    faults = message.list_faults(kind, text)
    if not faults:
        from warpsmith.driver.answers.models import ProfileAnswer

        answer = message.read_answer(kind, text)
        faults = _list_differences(answer, campaign) if isinstance(answer, ProfileAnswer) else []
    if faults:
        sys.stderr.write("".join(f"{fault}\n" for fault in faults))
        count = "one fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise Misuse(
            f"The answer is not a valid `{kind}`: {count}; `warpsmith answer show {kind}` prints the schema."
        )
    if as_json:
        console.out_json(answer)
    else:
        console.out(f"The answer is a valid `{kind}`.")


def answer_show_command(kind: Kind) -> None:
    """Print the JSON Schema of an answer, with an example."""
    from warpsmith.driver.answers import message

    console.out(message.describe_answer(kind))


def brief_command(campaign: CampaignName = None, as_json: Json = False) -> None:
    """Print the designer's task in the open round."""
    from warpsmith import project
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import state
    from warpsmith.driver.brief import write_brief
    from warpsmith.driver.task import render_task

    task = write_brief(state.read_state(store.find_campaign(project.find_project(), campaign)))
    console.out_json(task) if as_json else console.out(render_task(task))


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    group = typer.Typer(
        name="answer",
        help="Show and check the answers that agents hand back.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command("check")(answer_check_command)
    group.command("show")(answer_show_command)
    app.add_typer(group)
    app.command("brief")(brief_command)


def _read_message(file: Path | None) -> str:
    if file is not None and not file.is_file():
        raise MissingInput(f"{file} does not exist; name the file that holds the message.")
    try:
        data = sys.stdin.buffer.read() if file is None else file.read_bytes()
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Misuse(f"{file or 'stdin'} cannot be read: {error}; give UTF-8 text.") from error


def _list_differences(answer: ProfileAnswer, name: str | None) -> list[str]:
    """List the values that differ from the kept profile; stderr says so if there is none to compare with."""
    from warpsmith import project
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import state
    from warpsmith.driver.answers import profile as kept_profiles

    try:
        campaign = store.find_campaign(project.find_project(), name)
    except Misuse as error:
        if name:
            raise
        return _not_compared(str(error))
    manifest = campaign.manifest
    if (answer.op, answer.target) != (manifest.target_op, manifest.target):
        return _not_compared(f"{campaign.name} optimizes {manifest.target_op} on {manifest.target}.")
    current = kept_profiles.open_profile(state.read_state(campaign), answer.version)
    if current is None:
        return _not_compared(f"the open round of {campaign.name} has no profile of {answer.version}.")
    return kept_profiles.list_differences(answer, current[1])


def _not_compared(reason: str) -> list[str]:
    console.tell(f"Values not compared: {reason}")
    return []
