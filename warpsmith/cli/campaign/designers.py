"""Designers of campaigns as options of commands: which there are, and what each needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.errors import Misuse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from warpsmith.campaign.history.store import Campaign
    from warpsmith.core.text import Tell
    from warpsmith.driver.designer import Designer
    from warpsmith.project import Project

    DesignerFactory = Callable[[Campaign, Tell], Designer]
    """Creates the designer of a campaign, given a callback for its progress."""

DESIGNERS = {
    "recorded": "Designs are recorded",
    "drafts": "Designs are drafts",
    "claude": "Claude's agents design",
}
"""Designer to its first line of progress: `recorded` replays a campaign, `drafts` plays prepared versions, and
`claude` asks the plugin's agents."""

DesignerName = Annotated[
    str | None,
    typer.Option(
        "--designer",
        help=f"Designer: {', '.join(DESIGNERS)}; by default the one whose folder is given.",
    ),
]

Model = Annotated[
    str | None,
    typer.Option(help="Model of all agents of `claude`; by default the one that each agent's page names."),
]


def default_designer(recording: Path | None, drafts: Path | None) -> str:
    """Return the designer of the folder that is given."""
    if drafts is None and recording is None:
        raise Misuse("No designer: give --designer claude, --drafts FOLDER or --recording FOLDER.")
    return "recorded" if drafts is None else "drafts"


def select_designer(
    name: str, recording: Path | None, drafts: Path | None, model: str | None, budget: float | None
) -> tuple[DesignerFactory, Callable[[Project, str], str]]:
    """Return the factory of a designer, and a function that returns its first language on a target."""
    check_options(name, recording, drafts, model, budget)
    if name == "claude":
        return _claude_designer(model, budget)
    return _drafts_designer(drafts) if name == "drafts" else _recorded_designer(recording)


def check_options(
    name: str, recording: Path | None, drafts: Path | None, model: str | None, budget: float | None
) -> None:
    """Check that a designer is known and takes these options; raises Misuse."""
    if name not in DESIGNERS:
        raise Misuse(f"Unknown designer `{name}`; known: {', '.join(DESIGNERS)}.")
    if name == "claude":
        refuse_options({"recording": recording, "drafts": drafts}, "The claude designer replays nothing")
        return
    refuse_options({"model": model, "max-budget-usd": budget}, f"The {name} designer asks no model")
    if name == "drafts":
        refuse_options({"recording": recording}, "The drafts designer plays no recording")
    else:
        refuse_options({"drafts": drafts}, "The recorded designer plays no drafts")


def costs_agents(name: str) -> bool:
    """Return whether the rounds of a designer cost agents."""
    return name == "claude"


def _claude_designer(
    model: str | None, budget: float | None
) -> tuple[DesignerFactory, Callable[[Project, str], str]]:
    from warpsmith.driver.claude import process as claude_process
    from warpsmith.driver.claude.designer import ClaudeDesigner, first_language

    claude_process.require_claude()
    return lambda campaign, tell: ClaudeDesigner(campaign, model, budget, tell), first_language


def _drafts_designer(drafts: Path | None) -> tuple[DesignerFactory, Callable[[Project, str], str]]:
    from warpsmith.driver.drafts_designer import DraftsDesigner

    if drafts is None:
        raise Misuse("The drafts designer needs --drafts, a folder of versions named after their language.")
    player = DraftsDesigner(drafts.resolve())
    return lambda *_: player, lambda *_: player.language


def _recorded_designer(recording: Path | None) -> tuple[DesignerFactory, Callable[[Project, str], str]]:
    from warpsmith.driver.recorded_designer import RecordedDesigner

    if recording is None:
        raise Misuse(
            "The recorded designer needs --recording, the folder of a campaign; or use --designer claude."
        )
    player = RecordedDesigner(recording.resolve())
    return lambda *_: player, lambda *_: player.language


def refuse_options(settings: Mapping[str, object], reason: str) -> None:
    """Refuse options that were given; raises Misuse with the reason and their names."""
    if conflicts := [f"--{option}" for option, value in settings.items() if value is not None]:
        raise Misuse(f"{reason}; omit {' and '.join(conflicts)}.")
