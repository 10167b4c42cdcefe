"""Trial: one optimization of a whole program, from the backup over the edit to the verdict.

Killed at any place, the same command goes on from what is on disk. A verdict is written before the files are kept
or restored, and that is done before the trial gets its number.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith import backups
from warpsmith.core import trial as core
from warpsmith.core.base import Slug, this_minute
from warpsmith.core.trial import (
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
from warpsmith.program.analysis import prerequisites
from warpsmith.program.process.runner import TIMEOUT, Runner
from warpsmith.program.process.step import Program
from warpsmith.program.trials import numerics, pair_timing, trajectory, trial_files, trial_store
from warpsmith.program.trials.pair_timing import PairResult, ProgramForm
from warpsmith.program.trials.trial_store import Trials
from warpsmith.project import Project

if TYPE_CHECKING:
    from warpsmith.backups.models import RestoredFile

Tell = Callable[[str], None]

_STAYS_OPEN = "The trial stays open: mend the edit and verify again, or `warpsmith program abandon`."


@dataclass(frozen=True)
class TrialRequest:
    """What a trial is opened with."""

    entry: Slug
    """The optimization."""
    rules: ProgramRules
    """What its entry declares."""
    program: Program
    """The program."""
    files: tuple[Path, ...]
    """What may be edited; one that is not there yet is to be made."""
    predicted: float | None = None
    """The speedup that is expected."""
    slower: float = core.REGRESSION
    """The share by which the step may become slower."""
    anyway: bool = False
    """Whether prerequisites that do not hold are passed over."""


@dataclass(frozen=True)
class ClosedTrial:
    """What became of a trial."""

    folder: Path
    """Its record's folder."""
    record: TrialRecord
    """Its record."""
    restored: tuple[RestoredFile, ...] = ()
    """What restoring did to each file; empty where the edit was kept."""


def check_before_trial(
    project: Project, asked: TrialRequest, timeout: float = TIMEOUT, tell: Tell = lambda _: None
) -> Prerequisites:
    """Whether the program and the machine have what an optimization needs; runs a few steps.

    Raises:
        Misuse, SolutionFailed, TimedOut, MachineLacks: as `Runner`.
    """
    with Runner(asked.program, timeout=timeout, log=trial_files.output_path(project, asked.program)) as runner:
        tell("running a few steps")
        runner.start()
        facts = runner.observe()
        inspection = prerequisites.inspect_program(runner, watch=prerequisites.needs_watching(asked.rules))
    return prerequisites.check_prerequisites(
        asked.entry, asked.rules, prerequisites.gather_context(project, facts, inspection, asked.files)
    )


def open_trial(
    project: Project, asked: TrialRequest, timeout: float = TIMEOUT, tell: Tell = lambda _: None
) -> TrialPlan:
    """Check, measure, back up: then the named files may be edited. An open trial of the same is gone on with.

    Raises:
        Misuse: another trial is open, a prerequisite of the program does not hold, its values are not finite, or
            a file cannot be backed up.
        MachineLacks: the machine lacks a prerequisite.
        SolutionFailed, TimedOut: as `Runner`.
    """
    trials = trial_store.program_trials(project, asked.program)
    with trial_store.lock_programs(project):
        plan = trials.plan()
        if plan is None:
            plan = _plan_trial(project, asked, timeout, tell)
            trial_files.back_up_files(trials, plan)
            originals = {
                trial_files.original_name(n): path.read_bytes()
                for n, path in enumerate(asked.files)
                if path.is_file()
            }
            trials.publish(plan, originals)
            return plan
        if not _is_same_trial(project, plan, asked):
            raise Misuse(
                f"{trials.name} has an open trial of {plan.entry} on {trial_files.format_files(plan)}; "
                "`warpsmith program verify` judges it, `warpsmith program abandon` takes it back."
            )
        trial_files.back_up_files(trials, plan)
        return plan


def verify_trial(trials: Trials, timeout: float = TIMEOUT, tell: Tell = lambda _: None) -> ClosedTrial:
    """Judge the edit of the open trial, and keep it or put the files back.

    Raises:
        Misuse: no trial is open, nothing was edited, or a file was edited that is not backed up.
        SolutionFailed, TimedOut, MachineLacks: the edited program does not run; the trial stays open.
        Conflict: somebody else changed a file meanwhile where the edit changed it too; the trial stays open.
    """
    with trial_store.lock_programs(trials.project):
        plan = _require_open_plan(trials)
        record = trials.verdict()
        if record is None:
            record = _judge_edit(trials, plan, timeout, tell)
            trial_store.write_trial_file(trials.open / trial_store.RECORD, record)
        return _close_trial(trials, record)


def abandon_trial(trials: Trials, because: str) -> ClosedTrial:
    """Put the files back without a judgement; raises Misuse where no trial is open, Conflict as `verify`."""
    with trial_store.lock_programs(trials.project):
        plan = _require_open_plan(trials)
        record = trials.verdict()
        if record is None:
            reason = f"abandoned: {because}" if because else "abandoned"
            decision = TrialDecision(verdict=TrialVerdict.RESTORED, reason=reason)
            record = TrialRecord(
                plan=trial_files.rehash_files(trials, plan), decision=decision, closed=this_minute()
            )
            trial_store.write_trial_file(trials.open / trial_store.RECORD, record)
        return _close_trial(trials, record)


def _plan_trial(project: Project, asked: TrialRequest, timeout: float, tell: Tell) -> TrialPlan:
    """The plan of a new trial: the program is run as it is."""
    for path in asked.files:
        if path.is_symlink() or path.is_dir():
            raise Misuse(f"{path} is a {'link' if path.is_symlink() else 'folder'}; name the file to be edited.")
    with Runner(asked.program, timeout=timeout, log=trial_files.output_path(project, asked.program)) as runner:
        runner.start()
        tell("measuring the program as it is")
        baseline = pair_timing.time_program(runner, tell=tell)
        steps = runner.run(2)
        facts = runner.observe()
        imported = trial_files.project_relative(project, runner.call("imported", root=str(project.root)))
        inspection = prerequisites.inspect_program(runner, watch=prerequisites.needs_watching(asked.rules))
    if steps.broken is not None:
        raise Misuse(
            f"{asked.program.label}: step {steps.broken} returns NaN or infinity before any edit: nothing can be "
            "compared with it; mend the program first."
        )
    if blind := prerequisites.uncomparable_reason(asked.program, facts):
        raise Misuse(f"{blind}.")
    found = prerequisites.check_prerequisites(
        asked.entry, asked.rules, prerequisites.gather_context(project, facts, inspection, asked.files)
    )  # fmt: skip
    if found.refused and not asked.anyway:
        refuse_unmet(found)
    names = [project.relative(path) for path in asked.files]
    return TrialPlan(
        entry=asked.entry,
        rules=asked.rules,
        subject=trial_store.program_reference(project, asked.program),
        files=tuple(TrialFile(path=name, before=trial_files.file_digest(project.root / name)) for name in names),
        others={name: sha256 for name, sha256 in imported.items() if name not in names},
        prerequisites=found,
        predicted=asked.predicted,
        slower=asked.slower,
        baseline=baseline,
        device=facts.device,
        libraries={"torch": facts.torch, "python": facts.python},
        opened=this_minute(),
    )


def refuse_unmet(found: Prerequisites) -> None:
    """Raise MachineLacks or Misuse for the first prerequisite that does not hold, by who lacks it."""
    for one in found.refused:
        message = f"{found.entry} {one.need}. `--anyway` tries all the same."
        raise (MachineLacks if one.machine else Misuse)(message)


def _judge_edit(trials: Trials, plan: TrialPlan, timeout: float, tell: Tell) -> TrialRecord:
    project = trials.project
    trial_files.refuse_invalid_edit(trials, plan)
    if not trial_files.open_backups(project, plan):
        raise Misuse(
            f"{trial_files.format_files(plan)} has no backup of this trial any more; abandon it and apply again."
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
    compared = _compare_numerics(trials, plan, forms[0], forms[1], seed, tell)
    pairs = _time_edit(forms[0], forms[1], plan, tell) if compared.passed else []
    worst = min(pairs, key=lambda one: one.comparison.speedup, default=None)
    comparisons = [one.comparison for one in pairs]
    peaks = (worst.original.peak_bytes, worst.edited.peak_bytes) if worst else (None, None)
    decision = core.decide_trial(comparisons, compared, peaks, plan.rules.purpose, plan.slower)
    if decision.verdict is TrialVerdict.KEPT and trial_files.rehash_files(trials, plan) != plan:
        raise Misuse(
            f"{trial_files.format_files(plan)} changed while it was judged; verify again, it is what counts."
        )
    return TrialRecord(
        plan=plan,
        decision=decision,
        comparisons=tuple(comparisons),
        original=worst.original if worst else None,
        edited=worst.edited if worst else None,
        together=all(one.together for one in pairs),
        numerics=compared,
        closed=this_minute(),
    )


def _compare_numerics(
    trials: Trials, plan: TrialPlan, original: ProgramForm, edited: ProgramForm, seed: int, tell: Tell
) -> NumericsResult:
    """Three runs, one after the other: the original, the same rounding otherwise, and the edited program."""
    tell("comparing what both compute: the original")
    with original.runner() as runner:
        runner.start()
        ours = trajectory.record_trajectory(runner)
        facts = runner.observe()
    precision = numerics.effective_precision(plan.rules.precision, facts)
    tell("comparing what both compute: the original, rounding otherwise")
    with original.runner() as runner:
        runner.start()
        again = trajectory.record_trajectory(runner, jitter=numerics.BOUNDS[precision].jitter)
    tell("comparing what both compute: the edited program")
    try:
        with edited.runner() as runner:
            runner.start()
            theirs = trajectory.record_trajectory(runner)
            trial_files.refuse_new_imports(trials, plan, runner.call("imported", root=str(trials.project.root)))
    except (SolutionFailed, TimedOut, MachineLacks) as error:
        raise type(error)(f"{error} {_STAYS_OPEN}") from error
    return numerics.compare_numerics(ours, again, theirs, precision, seed)


def _time_edit(original: ProgramForm, edited: ProgramForm, plan: TrialPlan, tell: Tell) -> list[PairResult]:
    """Both sides in fresh processes; again in others unless the first show clearly that there is no gain."""
    pairs = [pair_timing.time_pair(original, edited, tell=tell)]
    if not core.shows_no_gain(pairs[0].comparison, plan.slower):
        tell("again, in fresh processes")
        pairs.append(pair_timing.time_pair(original, edited, tell=tell))
    return pairs


def _close_trial(trials: Trials, record: TrialRecord) -> ClosedTrial:
    """Keep or restore the files, then number the trial; done already, a part is passed over."""
    paths = [trials.project.root / one.path for one in trial_files.open_backups(trials.project, record.plan)]
    restored: tuple[RestoredFile, ...] = ()
    trial_files.refuse_newer_backup(trials.project, paths, trial_files.backup_label(record.plan))
    if paths and record.decision.verdict is TrialVerdict.KEPT:
        backups.keep_edits(trials.project, paths)
    elif paths:
        try:
            restored = backups.restore_files(trials.project, paths)
        except backups.RestoreConflict as conflict:
            raise backups.RestoreConflict(
                f"{record.decision.reason}. {conflict} The trial stays open: then `warpsmith program verify`.",
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


def _is_same_trial(project: Project, plan: TrialPlan, asked: TrialRequest) -> bool:
    return (
        plan.entry == asked.entry
        and plan.subject == trial_store.program_reference(project, asked.program)
        and [file.path for file in plan.files] == [project.relative(path) for path in asked.files]
    )
