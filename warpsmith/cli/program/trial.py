"""`warpsmith program check|apply|verify|abandon|next|report`: one optimization of a whole program at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from warpsmith.cli import console
from warpsmith.cli.options import Json
from warpsmith.cli.program import analyze as program
from warpsmith.cli.program.analyze import Command, Setup, Step, Timeout, Writes

if TYPE_CHECKING:
    from warpsmith.core.trial import NextAction, Prerequisites, ProgramRules, StepTiming, TrialPlan
    from warpsmith.knowledge.entry import ListedEntry
    from warpsmith.program.process.program import Program
    from warpsmith.program.trials.trial import ClosedTrial, TrialRequest
    from warpsmith.project import Project

_ARGUMENTS = "arguments of the program"


class _CommandWithArguments(TyperCommand):
    """A command whose last words, after `--`, are the program's own arguments."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's own class
        """Remove them before the command's own files are parsed."""
        if "--" in args:
            at = args.index("--")
            args, ctx.meta[_ARGUMENTS] = args[:at], args[at + 1 :]
        return super().parse_args(ctx, args)


Entry = Annotated[str, typer.Argument(metavar="ENTRY", help="A knowledge entry about whole programs.")]
Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FILE...]",
        help="The program and further files to edit; its arguments after `--`. With --command its script is one.",
    ),
]
Name = Annotated[str | None, typer.Argument(metavar="PROGRAM", help="By default the program with an open trial.")]


def check_command(
    context: typer.Context,
    entry: Entry,
    files: Files = None,
    step: Step = None,
    setup: Setup = None,
    command: Command = None,
    writes: Writes = None,
    timeout: Timeout = 600.0,
    as_json: Json = False,
) -> None:
    """Check an optimization's prerequisites on a program and this machine: ok, no or unknown, with evidence.

    Exit code 2: the program fails one; 4: the machine does.
    """
    from warpsmith import project
    from warpsmith.program.trials import trial

    current_project = project.find_project()
    request = _trial_request(
        current_project, entry, files or [], _named_program(context, files or [], step, setup, command, writes)
    )
    with console.progress() as tell:
        prerequisites = trial.check_before_trial(current_project, request, timeout, tell)
    console.out_json(prerequisites) if as_json else console.out("\n".join(_format_checks(prerequisites)))
    if prerequisites.refused:
        trial.refuse_unmet(prerequisites)


def apply_command(
    context: typer.Context,
    entry: Entry,
    files: Files = None,
    step: Step = None,
    setup: Setup = None,
    command: Command = None,
    writes: Writes = None,
    predict: Annotated[float | None, typer.Option(min=0.01, help="The speedup that you predict: 1.3.")] = None,
    slower: Annotated[
        float,
        typer.Option(
            min=0.01, max=0.9, help="For memory optimizations: the share by which a step may become slower."
        ),
    ] = 0.05,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Open the trial even if a prerequisite does not hold.")
    ] = False,
    timeout: Timeout = 600.0,
    as_json: Json = False,
) -> None:
    """Open the trial of one optimization: check it, measure the program, back its files up, and say what to edit.

    Run again with the same arguments to resume after a kill.
    """
    from dataclasses import replace

    from warpsmith import project
    from warpsmith.core.trial import REGRESSION
    from warpsmith.errors import Misuse
    from warpsmith.program.trials import trial

    current_project = project.find_project()
    request = _trial_request(
        current_project, entry, files or [], _named_program(context, files or [], step, setup, command, writes)
    )
    if slower > REGRESSION and request.rules.purpose == "speed":
        raise Misuse(f"--slower is for optimizations that save memory; {entry} is for speed.")
    request = replace(request, predicted=predict, slower=slower, ignore_unmet=anyway)
    with console.progress(phases=True) as tell:
        plan = trial.open_trial(current_project, request, timeout, tell)
    console.out_json(plan) if as_json else console.out(
        "\n".join(_format_opened(plan, _program_entry(current_project, entry)))
    )


def verify_command(name: Name = None, timeout: Timeout = 600.0, as_json: Json = False) -> None:
    """Judge the edit of the open trial: compare it with the original, then keep it or restore the files.

    Exit code 1: the files were restored, or a conflict prevents it; the reason is printed.
    """
    from warpsmith import backups, project
    from warpsmith.core.trial import TrialVerdict
    from warpsmith.errors import SolutionFailed
    from warpsmith.program.trials import trial, trial_store

    current_project = project.find_project()
    try:
        with console.progress(phases=True) as tell:
            closed = trial.verify_trial(trial_store.find_trials(current_project, name), timeout, tell)
    except backups.RestoreConflict as conflict:
        console.out(conflict.diffs)
        raise
    page = _render_page(current_project, closed.record.plan.subject.name)
    console.out_json(closed.record) if as_json else console.out("\n".join(_format_judged(current_project, closed)))
    console.tell(f"Page: {current_project.relative(page)}")
    if closed.record.decision.verdict is not TrialVerdict.KEPT:
        raise typer.Exit(SolutionFailed.exit_code)


def abandon_command(
    name: Name = None,
    because: Annotated[str, typer.Option(help="Reason, for the record.")] = "",
    as_json: Json = False,
) -> None:
    """Restore the files of the open trial without judging the edit; that is recorded too."""
    from warpsmith import backups, project
    from warpsmith.program.trials import trial, trial_store

    current_project = project.find_project()
    try:
        closed = trial.abandon_trial(trial_store.find_trials(current_project, name), because)
    except backups.RestoreConflict as conflict:
        console.out(conflict.diffs)
        raise
    _render_page(current_project, closed.record.plan.subject.name)
    console.out_json(closed.record) if as_json else console.out("\n".join(_format_judged(current_project, closed)))


def resume_trials_command(name: Name = None) -> None:
    """Move corrupt records of trials to the quarantine and remove unfinished writes."""
    from warpsmith import project
    from warpsmith.program.trials import trial_store

    repairs = trial_store.resume_trials(trial_store.find_trials(project.find_project(), name))
    console.out("\n".join(repairs) if repairs else "Nothing to repair.")


def next_command(
    analysis: Annotated[
        str | None,
        typer.Argument(metavar="PROGRAM|ANALYSIS", help="By default the only program, or its last analysis."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the next action for a program with the exact command; reads records and runs nothing."""
    from warpsmith import project
    from warpsmith.program.regions import next_region
    from warpsmith.program.trials import next_action

    current_project = project.find_project()
    state = next_action.read_program_state(current_project, analysis)
    action = next_region.choose_program_action(current_project, state)
    console.out_json(action) if as_json else console.out("\n".join(_format_action(action)))


def report_command(
    name: Name = None,
    measure: Annotated[
        bool, typer.Option(help="Measure the total if it is unknown for the present files.")
    ] = True,
    goal: Annotated[
        float | None, typer.Option(min=1.01, help="Set the goal: the speedup of a step over the first original.")
    ] = None,
    timeout: Timeout = 600.0,
    as_json: Json = False,
) -> None:
    """Render the page of a program's trials: each trial, and the first original compared with the present program.

    The total is not measured while a trial is open, because its edit would count.
    """
    from warpsmith import project
    from warpsmith.program.trials import goal as goals
    from warpsmith.program.trials import trial_store, trials_total

    current_project = project.find_project()
    trials = trial_store.find_trials(current_project, name)
    if goal is not None:
        goals.write_goal(trials, goals.ProgramGoal(speedup=goal))
    if measure:
        with console.progress() as tell:
            trials_total.refresh_total(trials, timeout, tell)
    path = _render_page(current_project, trials.name)
    console.out_json(trials.summary()) if as_json else console.out(path.read_text())
    console.tell(f"Page: {current_project.relative(path)}")


def register(_root: typer.Typer) -> None:
    """Add the commands to the group `program`."""
    program.app.command("check", cls=_CommandWithArguments)(check_command)
    program.app.command("apply", cls=_CommandWithArguments)(apply_command)
    program.app.command("verify")(verify_command)
    program.app.command("abandon")(abandon_command)
    program.app.command("resume")(resume_trials_command)
    program.app.command("next")(next_command)
    program.app.command("report")(report_command)


def _named_program(
    context: typer.Context,
    files: list[str],
    step: str | None,
    setup: str | None,
    command: str | None,
    writes: list[str] | None,
) -> Program:
    """Return the program of the arguments; with a command, the files are only those to edit."""
    if command is None:
        return program.resolve_program(files[0] if files else None, step, setup, context.meta.get(_ARGUMENTS))
    return program.require_script(program.resolve_program(None, step, setup, None, command, writes))


def _trial_request(project: Project, entry: str, files: list[str], resolved: Program) -> TrialRequest:
    """Return the request that the arguments of a command describe."""
    from warpsmith.program.trials.trial import TrialRequest

    others = files if resolved.command is not None else files[1:]
    edited = dict.fromkeys((resolved.path, *(Path(file).absolute() for file in others)))
    return TrialRequest(entry, _entry_rules(_program_entry(project, entry)), resolved, tuple(edited))


def _program_entry(project: Project, entry: str) -> ListedEntry:
    """Return the entry; raises Misuse if there is none, or it is about one kernel."""
    from warpsmith.errors import Misuse
    from warpsmith.knowledge.catalog import Catalog

    catalog = Catalog.load(project)
    if entry not in catalog.entries:
        catalog.get(entry)  # raises, and names similar entries
    listed = catalog.entries[entry]
    if listed.matter.program is None:
        names = [item.id for item in catalog.entries.values() if item.matter.program]
        raise Misuse(f"{entry} is about one kernel; entries about whole programs: {', '.join(names)}.")
    return listed


def _entry_rules(entry: ListedEntry) -> ProgramRules:
    from warpsmith.core.trial import ProgramRules

    return entry.matter.program or ProgramRules()


def _render_page(project: Project, name: str) -> Path:
    from warpsmith.program.trials.trial_store import Trials
    from warpsmith.reporting.programs import program_trials

    return program_trials.write_program_page(Trials(project, name))


def _format_checks(prerequisites: Prerequisites) -> Iterator[str]:
    width = max((len(check.name) for check in prerequisites.checks), default=0)
    for check in prerequisites.checks:
        yield f"{check.state:8}{check.name:{width}}  {check.evidence}"
    if not prerequisites.checks:
        yield f"{prerequisites.entry} has no prerequisites that a command can check."


def _format_opened(plan: TrialPlan, entry: ListedEntry) -> Iterator[str]:
    yield f"The trial of {plan.entry} on {plan.subject.path} is open."
    yield f"Before: {_format_timing(plan.baseline)} on {plan.device}"
    yield from _format_checks(plan.prerequisites)
    yield f"Edit: {', '.join(file.path for file in plan.files)}, and nothing else of the program."
    yield f"Recipe: {entry.path} (`warpsmith knowledge show {plan.entry}`)"
    step = f"the step `{plan.subject.step}`" if plan.subject.step else "a step of the script"
    yield (
        f"Keep what {step} returns and updates, and the order of samples and random draws."
        " Warm-up and capture must leave parameters, optimizer and generators unchanged."
    )
    yield f"Then: warpsmith program verify {plan.subject.name}"


def _format_judged(project: Project, closed: ClosedTrial) -> Iterator[str]:
    record = closed.record
    yield f"{record.decision.verdict}: {record.decision.reason}"
    if record.original and record.edited:
        yield f"original: {_format_timing(record.original)}"
        yield f"edited:   {_format_timing(record.edited)}"
    if record.measured and record.plan.predicted:
        yield f"predicted {record.plan.predicted:.2f}x, measured {record.measured.speedup:.2f}x"
    if record.numerics:
        for check in record.numerics.checks:
            share = "beyond its bound" if check.worst > 1 else f"{check.worst:.2g} of its bound"
            yield f"{check.name}: {share}{f', {check.detail}' if check.worst > 1 else ''}"
    if record.sign:
        yield f"sign of {record.plan.entry}: {record.sign.state}, {record.sign.evidence}"
    yield from record.notes
    if not record.together:
        yield "The two did not fit in memory together, so their processes took turns."
    for restored_file in closed.restored:
        yield f"{restored_file.path}: {_RESTORE_WORDS[restored_file.how]}"
    yield f"Record: {project.relative(closed.folder)}"
    yield f"Next: warpsmith program next {record.plan.subject.name}"


_RESTORE_WORDS = {
    "original": "restored",
    "merged": "the edit is undone; later changes by others stay",
    "removed": "removed, because it did not exist before",
    "unchanged": "already as before",
}


def _format_timing(timing: StepTiming) -> str:
    from warpsmith.reporting import format

    peak = f", peak {timing.peak_bytes / 1e9:.3g} GB" if timing.peak_bytes else ""
    first = f"first step {format.seconds(timing.first_seconds)}"
    return f"{format.seconds(timing.seconds)} per step ({timing.spread:.1%} spread), {first}{peak}"


def _format_action(action: NextAction) -> Iterator[str]:
    yield f"{action.program}: {action.action}"
    yield f"why: {action.why}"
    if action.command:
        yield f"command: {action.command}"
    if action.candidates:
        yield ""
    for number, candidate in enumerate(action.candidates, 1):
        entry = f" ({candidate.entry})" if candidate.entry else ""
        yield f"{number}. [{candidate.impact}] {candidate.title}{entry}: {candidate.standing}; {candidate.why}"
