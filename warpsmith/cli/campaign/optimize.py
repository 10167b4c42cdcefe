"""`warpsmith optimize` and `warpsmith demo`: the headless loop, with its progress on stderr."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from warpsmith import termination
from warpsmith.cli import console, durations
from warpsmith.cli.campaign import designers
from warpsmith.cli.campaign.designers import DesignerName, Model
from warpsmith.cli.campaign.rounds import port_sentence
from warpsmith.cli.options import Context, Experiment, FromScratch, MinimumGain, MinimumGainPer, Port, Target
from warpsmith.errors import AgentStopped, MissingInput, Misuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console
    from rich.text import Text

    from warpsmith.campaign.history.store import Campaign
    from warpsmith.campaign.rounds.due_phase import DuePhase
    from warpsmith.cli.campaign.designers import DesignerFactory
    from warpsmith.cli.durations import Duration
    from warpsmith.project import Project

CHECKED = "definition checked, machine measured"
"""Result of DEFINE."""


def optimize_command(
    op: Annotated[str, typer.Argument(help="Operator; its definition must exist.")],
    designer: DesignerName = None,
    recording: Annotated[Path | None, typer.Option(help="Folder of the campaign that `recorded` replays.")] = None,
    drafts: Annotated[
        Path | None,
        typer.Option(help="Folder, named after its language, that `drafts` plays."),
    ] = None,
    max_budget_usd: Annotated[
        float | None, typer.Option(help="Most dollars that `claude` may cost in this run.", min=0.01)
    ] = None,
    parallel: Annotated[
        int,
        typer.Option(
            help="Versions with different hypotheses that a round designs at once; the gate judges the fastest.",
            min=1,
            max=8,
        ),
    ] = 1,
    model: Model = None,
    target: Target = None,
    context: Context = None,
    language: Annotated[
        str | None, typer.Option(help="Language of the first version; by default the designer's.")
    ] = None,
    git: Annotated[
        Literal["none", "branch"] | None,
        typer.Option(help="branch: commit each accepted round to a branch; the default in a git checkout."),
    ] = None,
    max_iterations: Annotated[
        int | None, typer.Option(help="Number of rounds after which the campaign stops.")
    ] = None,
    minimum_gain: MinimumGain = None,
    minimum_gain_per: MinimumGainPer = "round",
    from_scratch: FromScratch = False,
    experiment: Experiment = False,
    port: Port = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the newest unfinished campaign.")] = False,
    campaign: Annotated[str | None, typer.Option(help="Continue this campaign.")] = None,
) -> None:
    """Run the whole loop until a stop condition holds or the designer has no further proposal."""
    from warpsmith.campaign.history import forecast
    from warpsmith.execution import contexts
    from warpsmith.lab.machine import hardware
    from warpsmith.project import find_project

    project = find_project()
    designer = designer or designers.default_designer(recording, drafts)
    if parallel > 1 and designer == "recorded":
        raise Misuse("The recorded designer plays one round after the other; omit --parallel.")
    create, first_language = designers.select_designer(designer, recording, drafts, model, max_budget_usd)
    settings: dict[str, object] = {
        "git": git,
        "max-iterations": max_iterations,
        "minimum-gain": minimum_gain,
        "minimum-gain-per": None if minimum_gain_per == "round" else minimum_gain_per,
    }
    replay = {"recording": recording, "drafts": drafts}
    replay_options = "".join(f" --{option} {folder}" for option, folder in replay.items() if folder)
    parallel_option = f" --parallel {parallel}" if parallel > 1 else ""
    continue_command = f"warpsmith optimize {op} --designer {designer}{replay_options}{parallel_option}"
    switches = {"from-scratch": from_scratch or None, "experiment": experiment or None, "port": port or None}
    if resume or campaign:
        options = {"language": language, "context": context, **settings, **switches}
        designers.refuse_options(options, "The campaign's manifest sets these")
        chosen = _unfinished_campaign(project, op, target, campaign)
    else:
        if context and target is None:
            raise Misuse("--context needs --target: the kind of device there.")
        kind = target or hardware.require_local_target(project).id
        start_in = language or first_language(project, kind)
        if designers.costs_agents(designer) or minimum_gain_per != "round":
            settings["minimum-gain"] = forecast.default_minimum_gain(
                minimum_gain, max_iterations, minimum_gain_per
            )
        settings |= {"context": contexts.chosen_context(project, context), **switches}
        chosen = _start_campaign(project, op, kind, start_in, settings, f"{continue_command} --resume")
    if parallel > 1:
        _refuse_unscreened(chosen)
    checked = "definition checked" if chosen.manifest.port else CHECKED
    define_result = "continued" if resume or campaign else checked
    _run_campaign(
        chosen,
        create,
        designer,
        define_result,
        f"{continue_command} --campaign {campaign}" if campaign else f"{continue_command} --resume",
        contenders=parallel,
    )


def demo_command(
    folder: Annotated[
        Path, typer.Option(help="Folder of the demo's project; an earlier project in it is kept.")
    ] = Path(".demo"),
) -> None:
    """Run a whole campaign on this machine's CPU: RMSNorm in C++, with recorded designs.

    The kernels and hypotheses come from an earlier real campaign. Every measurement and every verdict is made
    now, on this machine.
    """
    from warpsmith.campaign import define
    from warpsmith.driver import demo as setup
    from warpsmith.driver.recorded_designer import RecordedDesigner
    from warpsmith.project import find_project

    recording = setup.demo_recording()
    project = find_project(setup.create_demo_project(folder.resolve()))
    console.tell(f"Project {console.path_from_here(project.root)}")
    with console.progress() as tell:
        campaign = define.define(project, setup.OP, "cpu", "cpp", tell, git="none")
    player = RecordedDesigner(recording)
    _run_campaign(campaign, lambda *_: player, player.name, CHECKED, "", durations.duration_of(project, "demo"))


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    app.command("optimize")(optimize_command)
    app.command("demo")(demo_command)


def _refuse_unscreened(campaign: Campaign) -> None:
    """Refuse several versions at once in a campaign that decides by what a screen does not measure."""
    manifest = campaign.manifest
    if manifest.port:
        raise Misuse(
            f"{campaign.name} is a port campaign, and --parallel screens versions by time; omit --parallel."
        )
    if manifest.objective == "energy":
        raise Misuse(f"{campaign.name} decides by energy, and --parallel screens by time; omit --parallel.")


def _start_campaign(
    project: Project,
    op: str,
    target: str,
    language: str,
    settings: Mapping[str, object],
    continue_command: str,
) -> Campaign:
    """Start a campaign; raises Misuse if another one of the operator and target is unfinished."""
    from warpsmith.campaign import define
    from warpsmith.driver.optimize import list_unfinished

    if unfinished := list_unfinished(project, op, target):
        raise Misuse(
            f"{unfinished[0].name} is not finished: continue it with `{continue_command}`, or start another one"
            f" with `warpsmith start {op} --again` and name it with --campaign."
        )
    chosen = {name.replace("-", "_"): value for name, value in settings.items() if value is not None}
    with console.progress() as tell:
        return define.define(project, op, target, language, tell, **chosen)  # type: ignore[arg-type]


def _unfinished_campaign(project: Project, op: str, target: str | None, name: str | None) -> Campaign:
    """Return the campaign to continue."""
    from warpsmith.campaign.history import closing, store
    from warpsmith.driver.optimize import list_unfinished

    if name is None:
        unfinished = list_unfinished(project, op, target)
        if not unfinished:
            raise Misuse(f"No campaign of {op} is unfinished; start one without --resume.")
        return unfinished[0]
    selected = store.find_campaign(project, name)
    subject = (selected.manifest.target_op, selected.manifest.target)
    closing.refuse_closed(selected)
    if subject != (op, target or subject[1]):
        raise Misuse(f"{name} optimizes {subject[0]} on {subject[1]}; name a campaign of {op}.")
    return selected


def _run_campaign(
    campaign: Campaign,
    create: DesignerFactory,
    name: str,
    define_result: str,
    continue_command: str,
    duration: Duration | None = None,
    contenders: int = 1,
) -> None:
    """Run the loop, the final race and the report; if it stops early, print the state and how to continue."""
    from warpsmith.campaign.rounds import state
    from warpsmith.reporting import pages, terminal

    stderr = console.stderr()
    if campaign.manifest.port:
        console.tell(port_sentence(campaign.manifest))
    context = campaign.manifest.context
    machine = f"in the context {context}" if context else "on this machine"
    console.tell(f"{designers.DESIGNERS[name]}; every measurement and every verdict is made now, {machine}.")
    stderr.print(_progress_line("", "DEFINE", f"{campaign.name}: {define_result}"))
    try:
        run_rounds(campaign, create, stderr, duration, contenders)
    except AgentStopped as error:
        raise AgentStopped(f"{error} {_stop_summary(campaign, continue_command)}") from error
    except KeyboardInterrupt:
        console.tell(f"warpsmith: Interrupted. {_stop_summary(campaign, continue_command)}")
        raise typer.Exit(termination.INTERRUPTED) from None
    pages.render_campaign(campaign)
    terminal.print_report(
        console.stdout(), campaign.manifest, campaign.records(), state.read_state(campaign).final
    )
    console.out(f"Report: {console.path_from_here(campaign.folder / pages.REPORT)}")


def run_rounds(
    campaign: Campaign,
    create: DesignerFactory,
    stderr: Console,
    duration: Duration | None = None,
    contenders: int = 1,
) -> None:
    """Run the rounds of a campaign and its final race; raises MissingInput if it accepted no version."""
    from warpsmith.campaign import lab_requests
    from warpsmith.campaign.history import store
    from warpsmith.driver.optimize import LoopProgress
    from warpsmith.driver.optimize import run_loop as run

    with console.progress(duration) as tell:

        def end(step: DuePhase, result: str) -> None:
            phase = "BASELINE" if step.round == 1 and step.phase == "DESIGN" else step.phase
            stderr.print(_progress_line(f"round {step.round}", phase, result, designer.cost, stderr.width))

        designer = create(campaign, tell)
        progress = LoopProgress(lambda step: tell(f"round {step.round}  {step.phase}"), tell, end)
        current = run(campaign, designer, progress, contenders)
        if current.best is None:
            raise MissingInput(f"{campaign.name} has no accepted version; see {campaign.folder}.")
        if campaign.manifest.port:
            return
        with store.hold_campaign(campaign, "final race"):
            lab_requests.run_final_race(campaign, tell)
        stderr.print(_progress_line("", "REPORT", "raced the best version against the reference and every peer"))


def _stop_summary(campaign: Campaign, continue_command: str) -> str:
    """Return the state of a stopped run, its cost, and the command that continues it."""
    from warpsmith.campaign.rounds import state
    from warpsmith.campaign.rounds.due_phase import find_due_phase
    from warpsmith.core.spend import Spent

    current = state.read_state(campaign)
    step, folder_name = find_due_phase(current), campaign.project.relative(campaign.folder)
    spent = f" The campaign has cost {Spent.of(current.spent).text}." if current.spent else ""
    todo = f" Continue with `{continue_command}`." if continue_command else ""
    return f"{step.phase} of round {step.round} is due; everything before it is in {folder_name}.{spent}{todo}"


def _progress_line(where: str, phase: str, result: str, cost: str = "", width: int = 80) -> Text:
    """Return a line of progress, cut to the width without the cost, which is always complete."""
    from rich.text import Text

    line = Text(f"{where:<9}", no_wrap=True, overflow="ellipsis")
    line.append(f"{phase:<11}", style="bold")
    line.append(" ".join(result.split()))
    line.truncate(max(width - len(cost) - 1, 30), overflow="ellipsis")
    return line.append(f" {cost}") if cost else line
