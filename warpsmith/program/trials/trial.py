"""Trial: one optimization of a whole program, from the backup through the edit to the verdict.

After a kill at any point, the same command resumes from the state on disk. The verdict is written before the files
are kept or restored, and the trial gets its number after that.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith import backups, files
from warpsmith.campaign import texts
from warpsmith.core import trial as core
from warpsmith.core.base import Slug, this_minute
from warpsmith.core.text import Tell
from warpsmith.core.trial import (
    EditSign,
    NumericsResult,
    Prerequisites,
    ProgramRules,
    TrialDecision,
    TrialFile,
    TrialPlan,
    TrialRecord,
    TrialVerdict,
)
from warpsmith.errors import MachineLacks, Misuse, SolutionFailed, TimedOut
from warpsmith.program.analysis import prerequisites, record_names
from warpsmith.program.process.program import Program
from warpsmith.program.process.runner import TIMEOUT
from warpsmith.program.scripts.command_runner import open_runner
from warpsmith.program.trials import (
    edit_signs,
    graded_steps,
    numerics,
    pair_timing,
    rank_numerics,
    trajectory,
    trial_files,
    trial_store,
)
from warpsmith.program.trials.pair_timing import PairResult, ProgramForm
from warpsmith.program.trials.trial_store import Trials
from warpsmith.project import Project

if TYPE_CHECKING:
    from warpsmith.backups.models import RestoredFile

_STAYS_OPEN = "The trial stays open: fix the edit and verify again, or run `warpsmith program abandon`."


@dataclass(frozen=True)
class TrialRequest:
    """Request to open a trial."""

    entry: Slug
    """The optimization."""
    rules: ProgramRules
    """The rules that its entry declares."""
    program: Program
    """The program."""
    files: tuple[Path, ...]
    """The files that may be edited; a file that does not exist yet is to be created."""
    predicted: float | None = None
    """The predicted speedup; None if none was given."""
    slower: float = core.REGRESSION
    """The share by which the step may become slower."""
    ignore_unmet: bool = False
    """True if the trial opens although a prerequisite does not hold."""


@dataclass(frozen=True)
class ClosedTrial:
    """A closed trial, with what happened to its files."""

    folder: Path
    """Folder of its record."""
    record: TrialRecord
    """Its record."""
    restored: tuple[RestoredFile, ...] = ()
    """The result of restoring each file; empty if the edit was kept."""


def check_before_trial(
    project: Project, request: TrialRequest, timeout: float = TIMEOUT, tell: Tell = lambda _: None
) -> Prerequisites:
    """Check the prerequisites of an optimization on the program and the machine; runs a few steps.

    Raises:
        Misuse, SolutionFailed, TimedOut, MachineLacks: as `Runner`.
    """
    files.hide_from_git(project.root / record_names.SCRATCH)
    with open_runner(
        request.program, timeout=timeout, log=trial_files.output_path(project, request.program)
    ) as runner:
        tell("running a few steps")
        runner.start()
        facts = runner.observe()
        watch = prerequisites.needs_watching(request.rules)
        inspection = prerequisites.inspect_program(runner, facts, watch=watch)
    return prerequisites.check_prerequisites(
        request.entry, request.rules, prerequisites.gather_context(project, facts, inspection, request.files)
    )


def open_trial(
    project: Project, request: TrialRequest, timeout: float = TIMEOUT, tell: Tell = lambda _: None
) -> TrialPlan:
    """Check the prerequisites, measure the program and back the files up, so that they can be edited.

    An open trial of the same request is resumed.

    Raises:
        Misuse: another trial is open, a prerequisite of the program does not hold, its values are not finite, or
            a file cannot be backed up.
        MachineLacks: a prerequisite of the machine does not hold.
        SolutionFailed, TimedOut: as `Runner`.
    """
    trials = trial_store.program_trials(project, request.program)
    with trial_store.lock_programs(project):
        plan = trials.plan()
        if plan is None:
            plan = _plan_trial(project, request, timeout, tell)
            trial_files.back_up_files(trials, plan)
            originals = {
                trial_files.original_name(n): path.read_bytes()
                for n, path in enumerate(request.files)
                if path.is_file()
            }
            trials.publish(plan, originals)
            return plan
        if not _is_same_trial(project, plan, request):
            raise Misuse(
                f"{trials.name} has an open trial of {plan.entry} on {trial_files.format_files(plan)}; "
                "`warpsmith program verify` judges it, `warpsmith program abandon` takes it back."
            )
        trial_files.back_up_files(trials, plan)
        return plan


def verify_trial(trials: Trials, timeout: float = TIMEOUT, tell: Tell = lambda _: None) -> ClosedTrial:
    """Judge the edit of the open trial, then keep it or restore the files.

    Raises:
        Misuse: no trial is open, nothing was edited, or a file without a backup was edited.
        SolutionFailed, TimedOut, MachineLacks: the edited program does not run; the trial stays open.
        RestoreConflict: somebody else changed a file in the same lines as the edit; the trial stays open.
    """
    with trial_store.lock_programs(trials.project):
        plan = _require_open_plan(trials)
        record = trials.verdict()
        if record is None:
            trials.records()  # a corrupt one is reported before minutes of measurement
            record = trials.seal(_judge_edit(trials, plan, timeout, tell))
        return _close_trial(trials, record)


def abandon_trial(trials: Trials, reason: str, *, measured: bool = False) -> ClosedTrial:
    """Restore the files without judging the edit.

    Args:
        trials: the program's trials.
        reason: one sentence.
        measured: True if the lab gives the reason, with figures that it just measured.

    Raises:
        Misuse: no trial is open, or an agent's reason states a figure that no record supports.
        RestoreConflict: as `verify_trial`.
    """
    with trial_store.lock_programs(trials.project):
        plan = _require_open_plan(trials)
        record = trials.verdict()
        if record is None:
            if not measured:
                texts.refuse_faults(trials.project, {"reason": reason}, texts.quantities_of(plan))
            text = f"abandoned: {reason}" if reason else "abandoned"
            decision = TrialDecision(verdict=TrialVerdict.RESTORED, reason=text)
            plan = trial_files.rehash_files(trials, plan)
            record = trials.seal(TrialRecord(plan=plan, decision=decision, closed=this_minute()))
        return _close_trial(trials, record)


def _plan_trial(project: Project, request: TrialRequest, timeout: float, tell: Tell) -> TrialPlan:
    """Run the unedited program, and return the plan of a new trial."""
    for path in request.files:
        if path.is_symlink() or path.is_dir():
            raise Misuse(f"{path} is a {'link' if path.is_symlink() else 'folder'}; name the file to be edited.")
    with open_runner(
        request.program, timeout=timeout, log=trial_files.output_path(project, request.program)
    ) as runner:
        runner.start()
        tell("measuring the unedited program")
        baseline = pair_timing.time_program(runner, tell=tell) if request.program.command is None else None
        steps = runner.run(2)
        facts = runner.observe()
        imported = trial_files.project_relative(project, runner.call("imported_files", root=str(project.root)))
        watch = prerequisites.needs_watching(request.rules)
        inspection = prerequisites.inspect_program(runner, facts, watch=watch)
    if steps.broken_step:
        raise Misuse(
            f"{request.program.label}: {steps.broken_step} returns NaN or infinity before any edit, so "
            "an edit cannot be compared with it; fix the program first."
        )
    if reason := prerequisites.uncomparable_reason(request.program, facts):
        raise Misuse(f"{reason}.")
    checked = prerequisites.check_prerequisites(
        request.entry, request.rules, prerequisites.gather_context(project, facts, inspection, request.files)
    )  # fmt: skip
    if checked.refused and not request.ignore_unmet:
        refuse_unmet(checked)
    if baseline is None:  # a command may end by itself: its steps are timed in a run of their own
        form = ProgramForm(request.program, timeout=timeout, log=trial_files.output_path(project, request.program))
        baseline = pair_timing.time_form(form, tell=tell)
    names = [project.relative(path) for path in request.files]
    return TrialPlan(
        entry=request.entry,
        rules=request.rules,
        subject=trial_store.program_reference(project, request.program),
        files=tuple(TrialFile(path=name, before=trial_files.file_digest(project.root / name)) for name in names),
        others={name: sha256 for name, sha256 in imported.items() if name not in names},
        prerequisites=checked,
        predicted=request.predicted,
        slower=request.slower,
        baseline=baseline,
        device=facts.device,
        libraries={"torch": facts.torch, "python": facts.python},
        opened=this_minute(),
    )


def refuse_unmet(checked: Prerequisites) -> None:
    """Raise MachineLacks or Misuse for the first prerequisite that does not hold."""
    for prerequisite in checked.refused:
        message = f"{checked.entry} {prerequisite.need}. `--anyway` opens the trial regardless."
        raise (MachineLacks if prerequisite.machine else Misuse)(message)


def _judge_edit(trials: Trials, plan: TrialPlan, timeout: float, tell: Tell) -> TrialRecord:
    project = trials.project
    trial_files.refuse_invalid_edit(trials, plan)
    if not trial_files.list_trial_backups(project, plan):
        raise Misuse(
            f"{trial_files.format_files(plan)} no longer has a backup of this trial; abandon it and apply again."
        )
    plan = trial_files.snapshot_edit(trials, plan)
    backups.seal_backups(project, trial_files.editable_paths(trials, plan))
    program = trial_store.referenced_program(project, plan.subject)
    seed = secrets.randbits(31)
    forms = [
        ProgramForm(
            program,
            trial_files.copied_files(trials, plan, name),
            seed,
            timeout,
            trial_files.output_path(project, program, side),
        )
        for side, name in (("original", trial_files.original_name), ("edited", trial_files.edited_name))
    ]
    numerics_result, early, sign = _compare_numerics(trials, plan, forms[0], forms[1], seed, tell)
    timed = numerics_result.passed and sign.state != "no"
    numbers = graded_steps.read_edit_numbers(trial_files.read_edit(trials, plan))
    results = _time_edit(trials, forms[0], forms[1], plan, tell, numbers) if timed else []
    graded = [pair for result in results for pair in result.graded]
    checks = graded_steps.check_graded_steps(graded, early)
    numerics_result = numerics_result.model_copy(update={"checks": (*numerics_result.checks, *checks)})
    worst = min(results, key=lambda result: result.comparison.speedup, default=None)
    comparisons = [result.comparison for result in results]
    peaks = (worst.original.peak_bytes, worst.edited.peak_bytes) if worst else (None, None)
    decision = core.decide_trial(comparisons, numerics_result, peaks, plan.rules.purpose, plan.slower, sign)
    if decision.verdict is TrialVerdict.KEPT:
        trial_files.refuse_newer_edit(trials, plan)
    return TrialRecord(
        plan=plan,
        decision=decision,
        comparisons=tuple(comparisons),
        original=worst.original if worst else None,
        edited=worst.edited if worst else None,
        together=all(result.together for result in results),
        numerics=numerics_result,
        sign=sign,
        notes=graded_steps.describe_edit_numbers(numbers, graded) if len(results) > 1 else (),
        closed=this_minute(),
    )


def _compare_numerics(
    trials: Trials, plan: TrialPlan, original: ProgramForm, edited: ProgramForm, seed: int, tell: Tell
) -> tuple[NumericsResult, dict[str, float], EditSign]:
    """Run the original, the original with other rounding and the edited program in turn, and compare them.

    Returns:
        The comparison, the largest size of each value in the original's steps, and the sign of the edit.
    """
    tell("comparing numerics: the original")
    with original.compared_runner() as runner:
        runner.start()
        originals = trajectory.record_trajectories(runner)
        facts = runner.observe()
    precision = numerics.effective_precision(plan.rules.precision, facts)
    trial_files.refuse_newer_edit(trials, plan)
    tell("comparing numerics: the original with other rounding")
    with original.compared_runner() as runner:
        runner.start()
        reruns = trajectory.record_trajectories(runner, jitter=numerics.BOUNDS[precision].jitter)
    trial_files.refuse_newer_edit(trials, plan)
    tell("comparing numerics: the edited program")
    try:
        with edited.compared_runner() as runner:
            runner.start()
            edits = trajectory.record_trajectories(runner)
            trial_files.refuse_new_imports(
                trials, plan, runner.call("imported_files", root=str(trials.project.root))
            )
            edited_facts = runner.observe()
    except (SolutionFailed, TimedOut, MachineLacks) as error:
        raise type(error)(f"{error} {_STAYS_OPEN}") from error
    result = rank_numerics.compare_ranks(originals, reruns, edits, precision, seed)
    return result, rank_numerics.early_sizes(originals), edit_signs.check_sign(plan.rules, facts, edited_facts)


def _time_edit(
    trials: Trials, original: ProgramForm, edited: ProgramForm, plan: TrialPlan, tell: Tell, numbers: Sequence[int]
) -> list[PairResult]:
    """Time both sides in fresh processes; repeat in others unless the first pair clearly shows no gain.

    Those others are graded at the numbers of the edit, too.
    """
    trial_files.refuse_newer_edit(trials, plan)
    results = [pair_timing.time_pair(original, edited, tell=tell)]
    if not core.shows_no_gain(results[0].comparison, plan.slower):
        trial_files.refuse_newer_edit(trials, plan)
        tell("timing again, in fresh processes")
        steps = graded_steps.surrounding_steps(numbers)
        results.append(pair_timing.time_pair(original, edited, tell=tell, numbers=steps))
    return results


def _close_trial(trials: Trials, record: TrialRecord) -> ClosedTrial:
    """Keep or restore the files, then number the trial; parts that are already done are skipped."""
    paths = [
        trials.project.root / backup.path for backup in trial_files.list_trial_backups(trials.project, record.plan)
    ]
    restored: tuple[RestoredFile, ...] = ()
    trial_files.refuse_newer_backup(trials.project, paths, trial_files.backup_label(record.plan))
    if paths and record.decision.verdict is TrialVerdict.KEPT:
        backups.keep_edits(trials.project, paths)
    elif paths:
        try:
            restored = backups.restore_files(trials.project, paths)
        except backups.RestoreConflict as conflict:
            raise backups.RestoreConflict(
                f"{record.decision.reason}. {conflict} The trial stays open: after that, run "
                "`warpsmith program verify`.",
                conflict.diffs,
            ) from conflict
    return ClosedTrial(trials.close(), record, restored)


def _require_open_plan(trials: Trials) -> TrialPlan:
    plan = trials.plan()
    if plan is None:
        raise Misuse(
            f"{trials.name} has no open trial; `warpsmith program apply ENTRY FILE --step STEP` opens one."
        )
    return plan


def _is_same_trial(project: Project, plan: TrialPlan, request: TrialRequest) -> bool:
    return (
        plan.entry == request.entry
        and plan.subject == trial_store.program_reference(project, request.program)
        and [file.path for file in plan.files] == [project.relative(path) for path in request.files]
    )
