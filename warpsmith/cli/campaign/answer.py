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
    from warpsmith.driver.answers.models import AgentAnswer

Kind = Annotated[str, typer.Argument(help="Kind of answer: profile, version or review.")]


def answer_check_command(
    kind: Kind,
    file: Annotated[Path | None, typer.Argument(help="File with the message; by default stdin.")] = None,
    campaign: CampaignName = None,
    as_json: Json = False,
) -> None:
    """Check an agent's answer: its schema, the figures in its texts, and a profile's values."""
    from warpsmith.driver.answers import message

    text = _read_message(file)
    faults = message.list_faults(kind, text)
    if not faults:
        answer = message.read_answer(kind, text)
        faults = _list_differences(answer, campaign)
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


def brief_command(
    campaign: CampaignName = None,
    header: Annotated[
        bool, typer.Option("--header", help="Print the lab's header that a version includes.")
    ] = False,
    lessons: Annotated[bool, typer.Option("--lessons", help="Print the lessons of earlier campaigns.")] = False,
    as_json: Json = False,
) -> None:
    """Print the designer's task in the open round, or a text that it names."""
    from warpsmith import project
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import state
    from warpsmith.driver import brief
    from warpsmith.driver.task import render_task

    current = state.read_state(store.find_campaign(project.find_project(), campaign))
    pages = (brief.header_files(current) if header else []) + (brief.lesson_pages(current) if lessons else [])
    if header or lessons:
        if not pages:
            raise MissingInput(f"The open round of {current.campaign.name} has no such text; omit the option.")
        console.out("\n".join(page.read_text() for page in pages))
        return
    task = brief.write_brief(current)
    console.out_json(task) if as_json else console.out(render_task(task))


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    group = typer.Typer(
        help="Show and check the answers that agents hand back.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command("check")(answer_check_command)
    group.command("show")(answer_show_command)
    app.add_typer(group, name="answer")
    app.command("brief")(brief_command)


def _read_message(file: Path | None) -> str:
    if file is not None and not file.is_file():
        raise MissingInput(f"{file} does not exist; name the file that holds the message.")
    try:
        data = sys.stdin.buffer.read() if file is None else file.read_bytes()
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Misuse(f"{file or 'stdin'} cannot be read: {error}; give UTF-8 text.") from error


def _list_differences(answer: AgentAnswer, name: str | None) -> list[str]:
    """List the figures in texts that no record supports, and the values that differ from the kept profile.

    stderr says so if there is nothing to compare with.
    """
    from warpsmith import project
    from warpsmith.campaign import texts
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import open_round, state
    from warpsmith.driver.answers import message
    from warpsmith.driver.answers import profile as kept_profiles
    from warpsmith.driver.answers.models import ProfileAnswer

    try:
        campaign = store.find_campaign(project.find_project(), name)
    except Misuse as error:
        if name:
            raise
        return _not_compared(answer, str(error))
    manifest = campaign.manifest
    target = answer.target if isinstance(answer, ProfileAnswer) else manifest.target
    if (answer.op, target) != (manifest.target_op, manifest.target):
        return _not_compared(answer, f"{campaign.name} optimizes {manifest.target_op} on {manifest.target}.")
    current_state = state.read_state(campaign)
    recorded = open_round.round_quantities(current_state)
    faults = list(texts.text_faults(campaign.project, message.answer_texts(answer), recorded))
    if not isinstance(answer, ProfileAnswer):
        return faults
    current = kept_profiles.open_profile(current_state, answer.version)
    if current is None:
        reason = f"the open round of {campaign.name} has no profile of {answer.version}."
        return faults + _not_compared(answer, reason)
    return faults + kept_profiles.list_differences(answer, current[1])


def _not_compared(answer: AgentAnswer, reason: str) -> list[str]:
    """Say on stderr why the values of a profile were not compared; return no difference."""
    if hasattr(answer, "opportunities"):  # the only answer that has values
        console.tell(f"Values not compared: {reason}")
    return []
