"""`warpsmith optimize` and `warpsmith demo`: the loop headless, with its progress on stderr."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from warpsmith.cli import console
from warpsmith.errors import AgentStopped, MissingInput, Misuse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import Console
    from rich.text import Text

    from warpsmith.campaign.history.store import Campaign
    from warpsmith.campaign.rounds.steps import NextStep
    from warpsmith.driver.designer import Designer
    from warpsmith.project import Project

    Seat = Callable[[Campaign, Callable[[str], None]], Designer]
    """Seats a designer at a campaign; it tells what it does."""

DESIGNERS = {
    "recorded": "Designs are recorded",
    "drafts": "Designs are drafts",
    "claude": "Claude's agents design",
}
"""Who can design: `recorded` plays an earlier campaign's designs, `drafts` prepared versions, `claude` asks the
plugin's agents."""

CHECKED = "definition checked, machine measured"
"""What DEFINE has done."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells give it."""


def optimize(
    op: Annotated[str, typer.Argument(help="The operator; its definition must be there.")],
    designer: Annotated[
        str | None, typer.Option(help=f"Who designs: {', '.join(DESIGNERS)}; by default who has a folder to play.")
    ] = None,
    recording: Annotated[Path | None, typer.Option(help="The campaign folder that `recorded` plays.")] = None,
    drafts: Annotated[
        Path | None,
        typer.Option(help="The folder, named for its language, that `drafts` plays."),
    ] = None,
    max_budget_usd: Annotated[
        float | None, typer.Option(help="Dollars that `claude` may cost in this run.", min=0.01)
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="The model of all agents of `claude`; by default each agent's own.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="The device kind; by default the machine at hand's.")] = None,
    language: Annotated[str | None, typer.Option(help="The language; by default the designer's first.")] = None,
    git: Annotated[
        Literal["none", "branch"] | None, typer.Option(help="branch: each accepted round is a commit.")
    ] = None,
    max_iterations: Annotated[int | None, typer.Option(help="Rounds after which it ends.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the newest unfinished campaign.")] = False,
    campaign: Annotated[str | None, typer.Option(help="Go on with this campaign.")] = None,
) -> None:
    """Run the whole loop until a stop condition holds or the designer has nothing left to propose."""
    from warpsmith import project
    from warpsmith.lab.machine import hardware

    here = project.find()
    designer = designer or _player(recording, drafts)
    seat, first_language = _designer(designer, recording, drafts, model, max_budget_usd)
    settings = {"git": git, "max-iterations": max_iterations}
    plays = {"recording": recording, "drafts": drafts}
    played = "".join(f" --{option} {folder}" for option, folder in plays.items() if folder)
    again = f"warpsmith optimize {op} --designer {designer}{played}"
    if resume or campaign:
        _refuse({"language": language, **settings}, "These stand in the campaign's manifest since its start")
        chosen = _waiting(here, op, target, campaign)
    else:
        kind = target or hardware.at_hand(here).id
        start_in = language or first_language(here, kind)
        chosen = _started(here, op, kind, start_in, settings, f"{again} --resume")
    begun = "going on" if resume or campaign else CHECKED
    _run(chosen, seat, designer, begun, f"{again} --campaign {campaign}" if campaign else f"{again} --resume")


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
    console.tell(f"Project {console.near(here.root)}")
    with console.progress() as tell:
        campaign = define.define(here, setup.OP, "cpu", "cpp", tell)
    player = Recorded(recording)
    _run(campaign, lambda *_: player, player.name, CHECKED, "")


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    app.command()(optimize)
    app.command()(demo)


def _player(recording: Path | None, drafts: Path | None) -> str:
    """Who plays the folder that is given."""
    if drafts is None and recording is None:
        raise Misuse("Who designs? Give --designer claude, --drafts FOLDER or --recording FOLDER.")
    return "recorded" if drafts is None else "drafts"


def _designer(
    name: str, recording: Path | None, drafts: Path | None, model: str | None, budget: float | None
) -> tuple[Seat, Callable[[Project, str], str]]:
    """How to seat a designer, and the language that it starts in on a target."""
    if name not in DESIGNERS:
        raise Misuse(f"Unknown designer `{name}`; there are: {', '.join(DESIGNERS)}.")
    if name == "claude":
        _refuse({"recording": recording, "drafts": drafts}, "The claude designer plays nothing")
        return _claude(model, budget)
    _refuse({"model": model, "max-budget-usd": budget}, f"The {name} designer asks no model")
    if name == "drafts":
        _refuse({"recording": recording}, "The drafts designer plays no recording")
        return _drafted(drafts)
    _refuse({"drafts": drafts}, "The recorded designer plays no drafts")
    return _recorded(recording)


def _claude(model: str | None, budget: float | None) -> tuple[Seat, Callable[[Project, str], str]]:
    from warpsmith.driver.claude import process as claude_process
    from warpsmith.driver.claude.designer import Claude, first_language

    claude_process.require()
    return lambda campaign, tell: Claude(campaign, model, budget, tell), first_language


def _drafted(drafts: Path | None) -> tuple[Seat, Callable[[Project, str], str]]:
    from warpsmith.driver.drafted import Drafted

    if drafts is None:
        raise Misuse("The drafts designer needs --drafts, a folder of versions named for their language.")
    player = Drafted(drafts.resolve())
    return lambda *_: player, lambda *_: player.language


def _recorded(recording: Path | None) -> tuple[Seat, Callable[[Project, str], str]]:
    from warpsmith.driver.recorded import Recorded

    if recording is None:
        raise Misuse("The recorded designer needs --recording, a campaign's folder; or take --designer claude.")
    player = Recorded(recording.resolve())
    return lambda *_: player, lambda *_: player.language


def _started(
    here: Project,
    op: str,
    target: str,
    language: str,
    settings: Mapping[str, object],
    again: str,
) -> Campaign:
    """A new campaign; refused where one of the same operator and target waits to be finished."""
    from warpsmith.campaign import define
    from warpsmith.driver.optimize import unfinished

    if waiting := unfinished(here, op, target):
        raise Misuse(
            f"{waiting[0].name} is not finished: go on with `{again}`, or begin another one with"
            f" `warpsmith start {op}` and name it with --campaign."
        )
    chosen = {name.replace("-", "_"): value for name, value in settings.items() if value is not None}
    with console.progress() as tell:
        return define.define(here, op, target, language, tell, **chosen)


def _waiting(here: Project, op: str, target: str | None, name: str | None) -> Campaign:
    """The campaign to go on with."""
    from warpsmith.campaign.history import store
    from warpsmith.driver.optimize import unfinished

    if name is None:
        waiting = unfinished(here, op, target)
        if not waiting:
            raise Misuse(f"No campaign of {op} waits to be finished; start one without --resume.")
        return waiting[0]
    found = store.find(here, name)
    about = (found.manifest.target_op, found.manifest.target)
    if about != (op, target or about[1]):
        raise Misuse(f"{name} is a campaign of {about[0]} on {about[1]}; name one of {op}.")
    return found


def _refuse(settings: Mapping[str, object], why: str) -> None:
    if given := [f"--{option}" for option, value in settings.items() if value is not None]:
        raise Misuse(f"{why}; leave out {' and '.join(given)}.")


def _run(campaign: Campaign, seat: Seat, name: str, begun: str, again: str) -> None:
    """The loop, then the final race, then the report; where it stops before, what stands and how to go on."""
    from warpsmith.campaign.rounds import state
    from warpsmith.reporting import pages, terminal

    people = console.stderr()
    console.tell(f"{DESIGNERS[name]}; every measurement and every verdict is made here and now.")
    people.print(_line("", "DEFINE", f"{campaign.name}: {begun}"))
    try:
        _loop(campaign, seat, people)
    except AgentStopped as error:
        raise AgentStopped(f"{error} {_standing(campaign, again)}") from error
    except KeyboardInterrupt:
        console.tell(f"warpsmith: Interrupted. {_standing(campaign, again)}")
        raise typer.Exit(INTERRUPTED) from None
    pages.render(campaign)
    terminal.print_report(console.stdout(), campaign.manifest, campaign.records(), state.read(campaign).final)
    console.out(f"Report: {console.near(campaign.folder / pages.REPORT)}")


def _loop(campaign: Campaign, seat: Seat, people: Console) -> None:
    from rich.text import Text

    from warpsmith.campaign import work
    from warpsmith.campaign.history import lock
    from warpsmith.driver.optimize import Progress
    from warpsmith.driver.optimize import optimize as run

    with people.status("") as status:

        def tell(text: str) -> None:
            # Never a bare string: rich would read markup in it.
            status.update(Text(text, no_wrap=True, overflow="ellipsis"))

        def end(step: NextStep, result: str) -> None:
            phase = "BASELINE" if step.round == 1 and step.phase == "DESIGN" else step.phase
            people.print(_line(f"round {step.round}", phase, result, designer.cost, people.width))

        designer = seat(campaign, tell)
        progress = Progress(lambda step: tell(f"round {step.round}  {step.phase}"), tell, end)
        now = run(campaign, designer, progress)
        if now.best is None:
            raise MissingInput(f"{campaign.name} has no accepted version; see {campaign.folder}.")
        with lock.hold(campaign, "final race"):
            work.race(campaign, tell)
        people.print(_line("", "REPORT", "raced the best version against the reference and every peer"))


def _standing(campaign: Campaign, again: str) -> str:
    """Where a stopped run leaves the campaign, what it cost, and how to go on."""
    from warpsmith.campaign.rounds import state
    from warpsmith.campaign.rounds.steps import next_step
    from warpsmith.core.spend import Spent

    now = state.read(campaign)
    step, place = next_step(now), campaign.project.relative(campaign.folder)
    spent = f" The campaign has cost {Spent.of(now.spent).text}." if now.spent else ""
    todo = f" Go on with `{again}`." if again else ""
    return f"Round {step.round} stands at {step.phase}, and all before it is kept in {place}.{spent}{todo}"


def _line(where: str, phase: str, result: str, cost: str = "", width: int = 80) -> Text:
    """One line of progress, cut to the width; the running cost is never cut off."""
    from rich.text import Text

    line = Text(f"{where:<9}", no_wrap=True, overflow="ellipsis")
    line.append(f"{phase:<11}", style="bold")
    line.append(" ".join(result.split()))
    line.truncate(max(width - len(cost) - 1, 30), overflow="ellipsis")
    return line.append(f" {cost}") if cost else line
