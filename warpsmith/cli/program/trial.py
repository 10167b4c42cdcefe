"""`warpsmith program check|apply|verify|abandon|next|report`: one optimization of a whole program at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from warpsmith.cli import console
from warpsmith.cli.program import analyze as program
from warpsmith.cli.program.analyze import Json, Setup, Timeout

if TYPE_CHECKING:
    from warpsmith.core.trial import NextAction, Prerequisites, ProgramRules, StepTiming, TrialPlan
    from warpsmith.knowledge.entry import ListedEntry
    from warpsmith.program.trials.trial import ClosedTrial, TrialRequest
    from warpsmith.project import Project

_ARGUMENTS = "arguments of the program"


class _CommandWithArguments(TyperCommand):
    """A command whose last words, after `--`, are the program's own arguments."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's own class
        """Take them off before the command's own files are read."""
        if "--" in args:
            at = args.index("--")
            args, ctx.meta[_ARGUMENTS] = args[:at], args[at + 1 :]
        return super().parse_args(ctx, args)


Entry = Annotated[str, typer.Argument(metavar="ENTRY", help="A knowledge entry that is about whole programs.")]
Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...", help="The program, and further files to be edited; its arguments after `--`."
    ),
]
Step = Annotated[str, typer.Option(help="The module-level callable that does one step.")]
Name = Annotated[str | None, typer.Argument(metavar="PROGRAM", help="By default the one with a trial at work.")]


def check_command(
    context: typer.Context,
    entry: Entry,
    files: Files,
    step: Step,
    setup: Setup = None,
    timeout: Timeout = 600.0,
    as_json: Json = False,
) -> None:
    """Check what an optimization needs of a program and of this machine: ok, no or unknown, with evidence.

    Exit code 2: the program lacks something; 4: the machine does.
    """
    from warpsmith import project
    from warpsmith.program.trials import trial

    here = project.find_project()
    asked = _trial_request(context, here, entry, files, step, setup)
    with console.progress() as tell:
        found = trial.check_before_trial(here, asked, timeout, tell)
    console.out_json(found) if as_json else console.out("\n".join(_format_checks(found)))
    if found.refused:
        trial.refuse_unmet(found)


def apply_command(
    context: typer.Context,
    entry: Entry,
    files: Files,
    step: Step,
    setup: Setup = None,
    predict: Annotated[float | None, typer.Option(min=0.01, help="The speedup that you expect: 1.3.")] = None,
    slower: Annotated[
        float, typer.Option(min=0.01, max=0.9, help="For memory: the share by which a step may become slower.")
    ] = 0.05,
    anyway: Annotated[bool, typer.Option("--anyway", help="Though a prerequisite does not hold.")] = False,
    timeout: Timeout = 600.0,
    as_json: Json = False,
) -> None:
    """Open the trial of one optimization: check it, measure the program, back its files up, say what to edit.

    Run again with the same words it goes on with what a killed one left.
    """
    from dataclasses import replace

    from warpsmith import project
    from warpsmith.core.trial import REGRESSION
    from warpsmith.errors import Misuse
    from warpsmith.program.trials import trial

    here = project.find_project()
    asked = _trial_request(context, here, entry, files, step, setup)
    if slower > REGRESSION and asked.rules.purpose == "speed":
        raise Misuse(f"--slower is for optimizations that save memory; {entry} is for speed.")
    asked = replace(asked, predicted=predict, slower=slower, ignore_unmet=anyway)
    with console.progress() as tell:
        plan = trial.open_trial(here, asked, timeout, tell)
    console.out_json(plan) if as_json else console.out(
        "\n".join(_format_opened(plan, _program_entry(here, entry)))
    )


def verify_command(name: Name = None, timeout: Timeout = 600.0, as_json: Json = False) -> None:
    """Judge the edit of the open trial: measured against the original, numerics compared, then kept or restored.

    Exit code 1: the files were restored, or a conflict is in the way; the reason is printed.
    """
    from warpsmith import backups, project
    from warpsmith.core.trial import TrialVerdict
    from warpsmith.errors import SolutionFailed
    from warpsmith.program.trials import trial, trial_store

    here = project.find_project()
    try:
        with console.progress() as tell:
            closed = trial.verify_trial(trial_store.find_trials(here, name), timeout, tell)
    except backups.RestoreConflict as conflict:
        console.out(conflict.diffs)
        raise
    _render_page(here, closed.record.plan.subject.name)
    console.out_json(closed.record) if as_json else console.out("\n".join(_format_judged(here, closed)))
    if closed.record.decision.verdict is TrialVerdict.RESTORED:
        raise typer.Exit(SolutionFailed.exit_code)


def abandon_command(
    name: Name = None,
    because: Annotated[str, typer.Option(help="Why, for the record.")] = "",
    as_json: Json = False,
) -> None:
    """Put the files of the open trial back without judging the edit; that is recorded too."""
    from warpsmith import backups, project
    from warpsmith.program.trials import trial, trial_store

    here = project.find_project()
    try:
        closed = trial.abandon_trial(trial_store.find_trials(here, name), because)
    except backups.RestoreConflict as conflict:
        console.out(conflict.diffs)
        raise
    _render_page(here, closed.record.plan.subject.name)
    console.out_json(closed.record) if as_json else console.out("\n".join(_format_judged(here, closed)))


def next_command(
    analysis: Annotated[
        str | None, typer.Argument(metavar="PROGRAM|ANALYSIS", help="By default the only program, or its last.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what is due for a program, with the exact command; reads records and runs nothing."""
    from warpsmith import project
    from warpsmith.program.trials import next_action

    due = next_action.choose_action(next_action.read_program_state(project.find_project(), analysis))
    console.out_json(due) if as_json else console.out("\n".join(_format_action(due)))


def report_command(
    name: Name = None,
    measure: Annotated[
        bool, typer.Option(help="Measure the sum where it is not known for the present files.")
    ] = True,
    timeout: Timeout = 600.0,
    as_json: Json = False,
) -> None:
    """Render the page of a program's trials: each, and the first original against the program as it is.

    While a trial is open the sum is not measured: its edit would count.
    """
    from warpsmith import project
    from warpsmith.program.trials import trial_store, trials_total

    here = project.find_project()
    trials = trial_store.find_trials(here, name)
    total = trials.total()
    present = trials_total.present_files(trials)
    if measure and present and not trials.plan() and (total is None or total.files != present):
        with console.progress() as tell:
            trials_total.measure_total(trials, timeout, tell)
    path = _render_page(here, trials.name)
    console.out_json(trials.summary()) if as_json else console.out(path.read_text())
    console.tell(f"Page: {here.relative(path)}")


def register(_root: typer.Typer) -> None:
    """Add the commands to the group `program`."""
    program.app.command("check", cls=_CommandWithArguments)(check_command)
    program.app.command("apply", cls=_CommandWithArguments)(apply_command)
    program.app.command("verify")(verify_command)
    program.app.command("abandon")(abandon_command)
    program.app.command("next")(next_command)
    program.app.command("report")(report_command)


def _trial_request(
    context: typer.Context, here: Project, entry: str, files: list[str], step: str, setup: str | None
) -> TrialRequest:
    """What the words of a command mean."""
    from warpsmith.program.trials.trial import TrialRequest

    chosen = program.resolve_program(files[0], step, setup, context.meta.get(_ARGUMENTS))
    edited = dict.fromkeys((chosen.path, *(Path(file).absolute() for file in files[1:])))
    return TrialRequest(entry, _entry_rules(_program_entry(here, entry)), chosen, tuple(edited))


def _program_entry(here: Project, entry: str) -> ListedEntry:
    """The entry; raises Misuse where there is none, or where it is about one kernel."""
    from warpsmith.errors import Misuse
    from warpsmith.knowledge.catalog import Catalog

    catalog = Catalog.load(here)
    if entry not in catalog.entries:
        catalog.get(entry)  # says which are near
    found = catalog.entries[entry]
    if found.matter.program is None:
        whole = [one.id for one in catalog.entries.values() if one.matter.program]
        raise Misuse(f"{entry} is about one kernel; entries about whole programs: {', '.join(whole)}.")
    return found


def _entry_rules(entry: ListedEntry) -> ProgramRules:
    from warpsmith.core.trial import ProgramRules

    return entry.matter.program or ProgramRules()


def _render_page(here: Project, name: str) -> Path:
    from warpsmith.program.trials.trial_store import Trials
    from warpsmith.reporting import program_trials

    return program_trials.write_program_page(Trials(here, name))


def _format_checks(found: Prerequisites) -> Iterator[str]:
    wide = max((len(one.name) for one in found.checks), default=0)
    for one in found.checks:
        yield f"{one.state:8}{one.name:{wide}}  {one.evidence}"
    if not found.checks:
        yield f"{found.entry} needs nothing that a command can check."


def _format_opened(plan: TrialPlan, entry: ListedEntry) -> Iterator[str]:
    yield f"The trial of {plan.entry} on {plan.subject.path} is open."
    yield f"Before: {_format_timing(plan.baseline)} on {plan.device}"
    yield from _format_checks(plan.prerequisites)
    yield f"Edit: {', '.join(file.path for file in plan.files)}, and nothing else of the program."
    yield f"Recipe: {entry.path} (`warpsmith knowledge show {plan.entry}`)"
    yield (
        f"Keep the step `{plan.subject.step}`: what it returns, the samples and the draws in their order, what it"
        " updates. Warming up or capturing must leave parameters, optimizer and generators as they were."
    )
    yield f"Then: warpsmith program verify {plan.subject.name}"


def _format_judged(here: Project, closed: ClosedTrial) -> Iterator[str]:
    record = closed.record
    yield f"{record.decision.verdict}: {record.decision.reason}"
    if record.original and record.edited:
        yield f"original: {_format_timing(record.original)}"
        yield f"edited:   {_format_timing(record.edited)}"
    if record.measured and record.plan.predicted:
        yield f"predicted {record.plan.predicted:.2f}x, measured {record.measured.speedup:.2f}x"
    if record.numerics:
        for one in record.numerics.checks:
            share = "beyond its bound" if one.worst > 1 else f"{one.worst:.2g} of its bound"
            yield f"{one.name}: {share}{f', {one.detail}' if one.worst > 1 else ''}"
    if not record.together:
        yield "The two did not fit in memory together: processes took turns."
    for one_file in closed.restored:
        yield f"{one_file.path}: {_RESTORE_WORDS[one_file.how]}"
    yield f"Record: {here.relative(closed.folder)}"
    yield f"Next: warpsmith program next {record.plan.subject.name}"


_RESTORE_WORDS = {
    "original": "put back",
    "merged": "the edit is taken back; what somebody changed since stays",
    "removed": "removed, as it was not there before",
    "unchanged": "was as before already",
}


def _format_timing(one: StepTiming) -> str:
    from warpsmith.reporting import format

    peak = f", peak {one.peak_bytes / 1e9:.3g} GB" if one.peak_bytes else ""
    first = f"first step {format.seconds(one.first_seconds)}"
    return f"{format.seconds(one.seconds)} a step ({one.spread:.1%} spread), {first}{peak}"


def _format_action(due: NextAction) -> Iterator[str]:
    yield f"{due.program}: {due.action}"
    yield f"why: {due.why}"
    if due.command:
        yield f"command: {due.command}"
    if due.candidates:
        yield ""
    for number, one in enumerate(due.candidates, 1):
        entry = f" ({one.entry})" if one.entry else ""
        yield f"{number}. [{one.impact}] {one.title}{entry}: {one.standing}; {one.why}"
