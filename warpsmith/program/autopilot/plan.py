"""Plan of an autopilot: made from a program's regions, and continued while the program is unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from warpsmith import files
from warpsmith.core.base import this_minute
from warpsmith.core.text import Tell, describe_error
from warpsmith.core.trial import RankedRecommendation, TrialVerdict
from warpsmith.errors import CorruptRecord, MachineLacks, Misuse, SolutionFailed
from warpsmith.program.analysis import analysis_store, analyzer, region_file
from warpsmith.program.autopilot.models import AutopilotPlan, PlannedRegion
from warpsmith.program.compiled.models import RegionRow, StepRegions
from warpsmith.program.operators import accepted_regions
from warpsmith.program.process.program import Program
from warpsmith.program.regions import next_region, survey
from warpsmith.program.trials import next_action, trial_store
from warpsmith.program.trials.next_action import ProgramState
from warpsmith.project import Project

PLAN_FILE = "autopilot.json"
"""File in the folder of a program."""


@dataclass(frozen=True)
class PreparedPlan:
    """A plan, and what the last analysis says besides."""

    plan: AutopilotPlan
    """The plan."""
    continues: bool
    """True if an earlier run made it."""
    recommendations: tuple[RankedRecommendation, ...]
    """Optimizations of the last analysis that are due: edits, which the autopilot does not make."""


def prepare_plan(
    project: Project, program: Program, designer: str, most: int, timeout: float, tell: Tell
) -> PreparedPlan:
    """Return the last plan of a program that has not changed since, or make one if further regions are due.

    Args:
        project: the project.
        program: the program.
        designer: designer of the kernels, with its folder if it has one.
        most: largest number of regions of a new plan.
        timeout: seconds for each request to the program.
        tell: receives messages about the progress.

    Raises:
        Misuse: the step compiles nothing, no region is due, or a trial of something else is open.
        CorruptRecord: a record of the program does not read.
        SolutionFailed, TimedOut, MachineLacks: as `Runner`, or a step returns NaN or infinity.
    """
    name = trial_store.program_trials(project, program).name
    state = next_action.read_program_state(project, name)
    _refuse_open_trial(project, state)
    earlier, regions = read_plan(project, program), region_file.read_regions(project, name)
    if earlier is None or regions is None or not _is_current(earlier, regions, program, state):
        earlier = None
        state, regions = _list_regions(project, program, state, timeout, tell)
    passed = {result.digest for result in earlier.results if result.end == "not made"} if earlier else set()
    if earlier is not None and earlier.designer != designer:
        passed = set()  # another designer may have a kernel for them
    listed = next_region.list_due_regions(project, regions, state.records)
    due = [each.row for each in listed if each.row.digest not in passed][:most]
    if earlier is not None and earlier.results and (earlier.regions_left or not due):
        return PreparedPlan(earlier.model_copy(update={"designer": designer}), True, _due_edits(state))
    if not due:
        raise Misuse(f"{program.label}: {_no_region_reason(regions)}.")
    return PreparedPlan(_make_plan(project, program, designer, regions, due), False, _due_edits(state))


def read_plan(project: Project, program: Program) -> AutopilotPlan | None:
    """Read the last plan of a program; None if there is none. Raises CorruptRecord."""
    path = _plan_path(project, program)
    try:
        return AutopilotPlan.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        fault = describe_error(error) if isinstance(error, ValidationError) else str(error)
        raise CorruptRecord(f"{path} does not read: {fault}; remove it, and the autopilot plans anew.") from error


def write_plan(project: Project, program: Program, plan: AutopilotPlan) -> None:
    """Write the plan of a program."""
    files.write_file(_plan_path(project, program), plan.model_dump_json(indent=2) + "\n")


def _plan_path(project: Project, program: Program) -> Path:
    return analysis_store.program_folder(project, program) / PLAN_FILE


def _is_current(plan: AutopilotPlan, regions: StepRegions, program: Program, state: ProgramState) -> bool:
    """Return whether the program's file is as the autopilot left it, also if a kill came before its record."""
    path = plan.program.path
    before = {file.path: file.before for file in state.plan.files} if state.plan else {}
    kernels = accepted_regions.integration_entry("")
    left_hashes = [
        file.after
        for record in state.records
        if record.decision.verdict is TrialVerdict.KEPT
        and record.plan.entry.startswith(kernels)
        and record.closed >= plan.made
        for file in record.plan.files
        if file.path == path
    ]
    present = before.get(path) or files.file_sha256(program.path)
    return plan.listed == regions.measured and present in (plan.sha256, *left_hashes)


def _refuse_open_trial(project: Project, state: ProgramState) -> None:
    """Refuse to begin while a trial is open that no region of the project has; raises Misuse."""
    entries = map(accepted_regions.integration_entry, accepted_regions.list_definitions(project).values())
    if state.plan is not None and state.plan.entry not in entries:
        raise Misuse(f"{state.name} has an open trial of {state.plan.entry}; verify or abandon it first.")


def _list_regions(
    project: Project, program: Program, state: ProgramState, timeout: float, tell: Tell
) -> tuple[ProgramState, StepRegions]:
    """Analyze the program if it has changed, and list its regions."""
    if state.plan is None and next_action.choose_action(state).action == "analyze":
        analysis_store.check_analysis_writable(project, program)
        analysis = analyzer.analyze_program(project, program, tell, timeout=timeout)
        analysis_store.write_analysis(project, program, analysis)
        state = next_action.read_program_state(project, state.name)
    if state.analysis is not None and state.analysis.broken:
        raise SolutionFailed(f"{program.label}: a step returns NaN or infinity; fix that before kernels are made.")
    try:
        return state, survey.list_regions(project, program, tell, timeout=timeout)
    except Misuse as error:
        raise Misuse(f"{error} `warpsmith program next {state.name}` lists what else to try.") from error


def _make_plan(
    project: Project, program: Program, designer: str, regions: StepRegions, due: Sequence[RegionRow]
) -> AutopilotPlan:
    target = accepted_regions.local_target(project, regions.device)
    if target is None:
        raise MachineLacks(f"No hardware page matches {regions.device}; write one, as `warpsmith hardware` shows.")
    return AutopilotPlan(
        program=trial_store.program_reference(project, program),
        sha256=files.file_sha256(program.path),
        listed=regions.measured,
        device=regions.device,
        target=target.id,
        designer=designer,
        step_seconds=regions.step_seconds,
        kernel_seconds=regions.kernel_seconds,
        regions=tuple(
            PlannedRegion(digest=row.digest, kind=row.kind, share=row.share, ceiling=row.ceiling) for row in due
        ),
        made=this_minute(),
    )


def _no_region_reason(regions: StepRegions) -> str:
    """Return why no region is due."""
    usable = [row for row in regions.rows if not row.refusal]
    if not usable and regions.rows:
        return f"no region can be replaced, the largest because it {regions.rows[0].refusal}"
    if any(row.share >= next_region.LEAST_SHARE for row in usable):
        return "every region with a share was tried in the step; `warpsmith program report` shows them"
    largest = max((row.share for row in usable), default=0.0)
    return (
        f"no region takes {next_region.LEAST_SHARE:.0%} of the step, the largest {largest:.1%}; "
        "`warpsmith program next` says what else to try"
    )


def _due_edits(state: ProgramState) -> tuple[RankedRecommendation, ...]:
    if state.analysis is None:
        return ()
    ranked = next_action.rank_recommendations(state, state.analysis)
    return tuple(item for item in ranked if item.entry and item.standing == "due")
