"""`warpsmith program autopilot`: kernels for the regions of a compiled step, each kept if the whole step gains."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from warpsmith.cli import console
from warpsmith.cli.campaign.designers import DesignerName, Model
from warpsmith.cli.options import Json
from warpsmith.cli.program import analyze as program
from warpsmith.cli.program.analyze import Arguments, Command, ProgramArgument, Setup, Step, Timeout, Writes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.core.trial import TrialsTotal
    from warpsmith.program.autopilot.chain import MakeKernel
    from warpsmith.program.autopilot.models import AutopilotPlan, PlannedRegion
    from warpsmith.program.autopilot.plan import PreparedPlan
    from warpsmith.program.trials.trial_store import Trials
    from warpsmith.project import Project
    from warpsmith.reporting.programs.fusion_ledger import LedgerRow

_HALF = 0.5


def autopilot_command(
    program_path: ProgramArgument = None,
    arguments: Arguments = None,
    step: Step = None,
    setup: Setup = None,
    command: Command = None,
    writes: Writes = None,
    designer: DesignerName = None,
    drafts: Annotated[
        Path | None,
        typer.Option(help="For `drafts`: folder with FOLDER/REGION/LANGUAGE; REGION is a digest or a definition."),
    ] = None,
    recording: Annotated[
        Path | None, typer.Option(help="For `recorded`: folder with a campaign's folder for each region.")
    ] = None,
    model: Model = None,
    language: Annotated[
        str | None, typer.Option(help="Language of first versions; by default the designer's.")
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="Largest number of regions of a plan.")] = 3,
    goal: Annotated[
        float | None, typer.Option(min=1.01, help="Stop at this speedup of a step over the first original.")
    ] = None,
    max_budget_usd: Annotated[
        float | None,
        typer.Option(help="Most dollars that all campaigns for the plan's regions may cost.", min=0.01),
    ] = None,
    max_iterations: Annotated[
        int | None, typer.Option(help="Number of rounds after which a campaign stops.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan, and make nothing.")] = False,
    timeout: Timeout = 600.0,
    as_json: Json = False,
) -> None:
    """Make kernels for the regions of a compiled step, and keep those with which the whole step is faster.

    Print the plan, then extract, optimize and integrate one region after the other, and print what was gained.
    The same command goes on after a kill. Exit code 1 if no kernel was kept.
    """
    from warpsmith import project, termination
    from warpsmith.cli.campaign import designers
    from warpsmith.program.autopilot import chain, plan
    from warpsmith.program.trials import goal as goals
    from warpsmith.program.trials import trial_store
    from warpsmith.reporting.programs import program_trials

    current_project = project.find_project()
    resolved = program.require_script(
        program.resolve_program(program_path, step, setup, arguments, command, writes, verb="autopilot")
    )
    name = designer or ("none" if dry_run and not (drafts or recording) else _default(recording, drafts))
    if name != "none":
        designers.check_options(name, recording, drafts, model, max_budget_usd)
    make_kernel = None if name == "none" else _kernel_maker(
        current_project, name, drafts, recording, model, language, max_iterations
    )  # fmt: skip
    folder = drafts or recording
    prepared = plan.prepare_plan(
        current_project, resolved, f"{name} {folder}" if folder else name, most, timeout, console.tell
    )
    if not as_json:
        console.out("\n".join(_format_plan(prepared, goal, max_budget_usd)))
    plan.write_plan(current_project, resolved, prepared.plan)
    if dry_run or make_kernel is None:
        if as_json:
            console.out_json(prepared.plan)
        return
    trials = trial_store.program_trials(current_project, resolved)
    program_goal = goals.ProgramGoal(speedup=goal) if goal is not None else None
    if program_goal is not None:
        goals.write_goal(trials, program_goal)
    settings = chain.AutopilotSettings(program_goal, max_budget_usd, timeout)
    try:
        stop = chain.run_plan(current_project, resolved, prepared.plan, settings, make_kernel, console.tell)
        total = chain.program_total(current_project, resolved, timeout, console.tell)
    except KeyboardInterrupt:
        console.tell("warpsmith: Interrupted; the same command goes on.")
        raise typer.Exit(termination.INTERRUPTED) from None
    ended_plan = plan.read_plan(current_project, resolved) or prepared.plan
    page = program_trials.write_program_page(trials)
    console.out_json(ended_plan) if as_json else _print_results(trials, ended_plan, total, stop)
    console.tell(f"Page: {current_project.relative(page)}")
    if not any(result.end == "kept" for result in ended_plan.results):
        raise typer.Exit(1)


def register(_root: typer.Typer) -> None:
    """Add the command to the group `program`."""
    program.app.command("autopilot")(autopilot_command)


def _default(recording: Path | None, drafts: Path | None) -> str:
    from warpsmith.cli.campaign import designers
    from warpsmith.errors import Misuse

    try:
        return designers.default_designer(recording, drafts)
    except Misuse as error:
        raise Misuse(f"{error} `--dry-run` prints the plan alone.") from error


def _kernel_maker(
    project: Project,
    designer: str,
    drafts: Path | None,
    recording: Path | None,
    model: str | None,
    language: str | None,
    max_iterations: int | None,
) -> MakeKernel:
    """Return the function that runs the campaign of a region."""
    from warpsmith.campaign import define
    from warpsmith.campaign.history import forecast
    from warpsmith.cli.campaign import designers, optimize
    from warpsmith.driver.optimize import list_unfinished
    from warpsmith.errors import MissingInput
    from warpsmith.reporting import pages
    from warpsmith.use import choice

    for folder in filter(None, (drafts, recording)):
        if not folder.is_dir():
            raise MissingInput(f"There is no folder {folder}; it has a folder for each region.")
    if not (drafts or recording):
        designers.select_designer(designer, recording, drafts, model, None)  # refuses what lacks something

    def make_kernel(region: PlannedRegion, op: str, target: str, left: float | None) -> None:
        unfinished = list_unfinished(project, op, target)
        if not unfinished and choice.rank_versions(project, op).get(target):
            return
        create, first_language = designers.select_designer(
            designer,
            _region_folder(recording, region.digest, op),
            _language_folder(_region_folder(drafts, region.digest, op)),
            model,
            left,
        )
        if unfinished:
            campaign = unfinished[0]
        else:
            minimum = (
                forecast.default_minimum_gain(None, max_iterations, "round")
                if designers.costs_agents(designer)
                else None
            )
            chosen: dict[str, Any] = {"max_iterations": max_iterations, "minimum_gain": minimum}
            with console.progress() as tell:
                campaign = define.define(
                    project, op, target, language or first_language(project, target), tell,
                    **{key: value for key, value in chosen.items() if value is not None},
                )  # fmt: skip
        console.tell(f"Campaign {campaign.name}: {project.relative(campaign.folder)}")
        try:
            optimize.run_rounds(campaign, create, console.stderr())
        finally:
            pages.render_campaign(campaign)

    return make_kernel


def _region_folder(folder: Path | None, digest: str, op: str) -> Path | None:
    """Return the folder of a region inside of another; raises MissingInput if it has none."""
    from warpsmith.errors import MissingInput

    if folder is None:
        return None
    chosen = next((folder / name for name in (op, digest) if (folder / name).is_dir()), None)
    if chosen is None:
        raise MissingInput(f"{folder} has no folder {digest} or {op}")
    return chosen


def _language_folder(folder: Path | None) -> Path | None:
    """Return the only folder inside of a region's, which is named after a language; raises MissingInput."""
    from warpsmith.errors import MissingInput

    if folder is None:
        return None
    folders = [path for path in sorted(folder.iterdir()) if path.is_dir()]
    if len(folders) != 1:
        raise MissingInput(f"{folder} has {len(folders)} folders; it takes one, named after the drafts' language")
    return folders[0]


def _format_plan(prepared: PreparedPlan, goal: float | None, budget: float | None) -> Iterator[str]:
    from warpsmith.core.spend import format_usd
    from warpsmith.reporting import format

    plan = prepared.plan
    yield (
        f"{plan.program.command or plan.program.path} on {plan.device}:"
        f" {format.seconds(plan.step_seconds)} per step, of which Inductor's kernels take"
        f" {format.seconds(plan.kernel_seconds)}"
    )
    progress = f", {len(plan.results)} of them done by an earlier run" if prepared.continues else ""
    yield f"Plan: {format.count_noun(len(plan.regions), 'region')}, together {plan.share:.1%} of a step{progress}"
    for region in plan.regions:
        yield f"  {region.digest}  {region.kind:12}  {region.share:6.1%}  at most {format.factor(region.ceiling)}"
    halved = 1 / (1 - _HALF * plan.share)
    yield (
        f"Expected: at most {format.factor(plan.bound)} if these took no time, {halved:.2f}x if each took half"
        " of its time"
    )
    spend = format_usd(budget) if budget is not None else "no limit in dollars"
    goal_text = f"{goal:g}x over the first original" if goal is not None else "none"
    yield f"Target: {plan.target}; designer: {plan.designer}; budget: {spend}; goal: {goal_text}"
    for item in prepared.recommendations[:3]:
        yield f"Not done here: {item.title} ({item.impact}); `warpsmith program next {plan.program.name}`"


def _print_results(trials: Trials, plan: AutopilotPlan, total: TrialsTotal | None, stop: str) -> None:
    from warpsmith.reporting import format
    from warpsmith.reporting.programs import fusion_ledger

    ledger = fusion_ledger.read_ledger(trials)
    reasons = {result.digest: result.reason for result in plan.results}
    planned = {region.digest for region in plan.regions}
    entries = ledger.entries if ledger else ()
    listed = [entry for entry in entries if entry.region.digest in planned or entry.record is not None]
    console.out_table(
        ("region", "share", "kernel", "alone", "in the step", "outcome"), _result_cells(listed, reasons)
    )
    console.out(f"Stopped: {stop}.")
    if total is None:
        console.out("The step is as it was: no kernel was kept.")
        return
    low, high = total.comparison.interval.low, total.comparison.interval.high
    console.out(
        f"Step: {format.seconds(total.original.seconds)} -> {format.seconds(total.present.seconds)},"
        f" {total.comparison.speedup:.3f}x [{low:.3f}, {high:.3f}] over the first original"
    )


def _result_cells(entries: Sequence[LedgerRow], reasons: dict[str, str]) -> list[tuple[str, ...]]:
    """Return the cells of the table; a region without a trial has the reason of the plan."""
    rows: list[tuple[str, ...]] = []
    for entry in entries:
        digest, audit, gained = entry.region.digest, entry.transfer, entry.gained
        if audit is not None and audit.measured is not None:
            interval = audit.measured.interval
            gained = f"{gained}, {audit.measured.speedup:.3f}x [{interval.low:.3f}, {interval.high:.3f}]"
        reason = entry.record.decision.reason if entry.record is not None else reasons.get(digest, "")
        outcome = f"{entry.outcome}: {reason}" if reason else entry.outcome
        rows.append((digest, f"{entry.region.share:.1%}", entry.kernel or "-", entry.alone, gained, outcome))
    return rows
