"""`warpsmith optimize` and `warpsmith demo`: the loop headless, with its progress on stderr."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.errors import MissingInput, Misuse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from rich.text import Text

    from warpsmith.campaign.store import Campaign
    from warpsmith.driver.designer import Designer
    from warpsmith.driver.optimize import Progress
DESIGNERS = ("recorded",)
"""Who can design: `recorded` plays the versions and hypotheses of an earlier campaign."""


def optimize(
    op: Annotated[str, typer.Argument(help="The operator; its definition must be there.")],
    designer: Annotated[str, typer.Option(help=f"Who designs: {', '.join(DESIGNERS)}.")] = "recorded",
    recording: Annotated[Path | None, typer.Option(help="The campaign folder that `recorded` plays.")] = None,
    target: Annotated[str | None, typer.Option(help="The device kind; by default the machine at hand's.")] = None,
    language: Annotated[str | None, typer.Option(help="The language; by default the designer's first.")] = None,
    git: Annotated[str, typer.Option(help="branch: each accepted round is a commit; none.")] = "none",
    max_iterations: Annotated[int | None, typer.Option(help="Rounds after which it ends.")] = None,
    resume: Annotated[str | None, typer.Option(help="Go on with this campaign instead of a new one.")] = None,
) -> None:
    """Run the whole loop until a stop condition holds or the designer has nothing left to propose."""
    from warpsmith import project
    from warpsmith.campaign import define, store
    from warpsmith.driver.recorded import Recorded
    from warpsmith.lab import hardware

    here = project.find()
    if designer not in DESIGNERS:
        raise Misuse(f"Unknown designer `{designer}`; there are: {', '.join(DESIGNERS)}.")
    if recording is None:
        raise Misuse("The recorded designer needs --recording, a campaign's folder.")
    player = Recorded(recording.resolve())
    if resume:
        campaign = store.find(here, resume)
    else:
        chosen = target or hardware.at_hand(here).id
        with console.progress() as tell:
            campaign = define.define(
                here, op, chosen, language or player.language, tell, git=git, max_iterations=max_iterations
            )
    _run(campaign, player)


def demo(
    folder: Annotated[Path, typer.Option(help="Where the demo's project goes; an earlier one is kept.")] = Path(
        ".demo"
    ),
) -> None:
    """Run a whole campaign on this machine's CPU: RMSNorm in C++, its design turns recorded.

    The kernels and hypotheses are those of an earlier real campaign; every measurement and every
    verdict is made here and now.
    """
    from warpsmith import project
    from warpsmith.campaign import define
    from warpsmith.driver import demo as setup
    from warpsmith.driver.recorded import Recorded

    recording = setup.recording()
    here = project.find(setup.prepare(folder.resolve()))
    people = console.stderr()
    people.print(f"Project {here.root}", highlight=False, soft_wrap=True)
    with console.progress() as tell:
        campaign = define.define(here, setup.OP, "cpu", "cpp", tell)
    _run(campaign, Recorded(recording))


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    app.command()(optimize)
    app.command()(demo)


def _run(campaign: Campaign, designer: Designer) -> None:
    """The loop, then the final race, then the report."""
    from warpsmith.campaign import lock, state, work
    from warpsmith.driver.optimize import optimize as run
    from warpsmith.reporting import pages, terminal

    people = console.stderr()
    name = designer.name
    people.print(f"Designs are {name}; every measurement and every verdict is made here and now.", highlight=False)
    people.print(_line("", "DEFINE", f"{campaign.name}: definition checked, machine measured"))
    with _progress() as progress:
        now = run(campaign, designer, progress)
        if now.best is None:
            raise MissingInput(f"{campaign.name} has no accepted version; see {campaign.folder}.")
        with lock.hold(campaign, "final race"):
            work.race(campaign, progress.tell)
            people.print(_line("", "REPORT", "raced the best version against the reference and every peer"))
    pages.render(campaign)
    terminal.print_report(console.stdout(), campaign.manifest, campaign.records(), state.read(campaign).final)
    console.out(f"Report: {campaign.folder / pages.REPORT}")


def _progress() -> AbstractContextManager[Progress]:
    from contextlib import contextmanager

    from warpsmith.campaign.steps import NextStep
    from warpsmith.driver.optimize import Progress

    people = console.stderr()

    @contextmanager
    def telling() -> Iterator[Progress]:
        with people.status("") as status:

            def begin(step: NextStep) -> None:
                status.update(f"round {step.round}  {step.phase}")

            def end(step: NextStep, result: str) -> None:
                phase = "BASELINE" if step.round == 1 and step.phase == "DESIGN" else step.phase
                people.print(_line(f"round {step.round}", phase, result), overflow="ellipsis", no_wrap=True)

            yield Progress(begin, lambda text: status.update(text), end)

    return telling()


def _line(where: str, phase: str, result: str) -> Text:
    from rich.text import Text

    line = Text(f"{where:<9}")
    line.append(f"{phase:<11}", style="bold")
    return line.append(result)
