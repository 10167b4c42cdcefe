"""Work of an autopilot: each region of its plan gets a definition, a campaign, and a trial in the whole step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from warpsmith import files
from warpsmith.campaign.history import store
from warpsmith.campaign.rounds import state as campaign_state
from warpsmith.core.spend import Spent, format_usd
from warpsmith.core.text import Tell
from warpsmith.core.trial import TrialDecision, TrialsTotal, TrialVerdict
from warpsmith.errors import BadDefinition, MachineLacks, MissingInput, Misuse, SolutionFailed, TimedOut
from warpsmith.program.autopilot import plan as plans
from warpsmith.program.autopilot.models import AutopilotPlan, PlannedRegion, RegionResult
from warpsmith.program.operators import accepted_regions, integrate
from warpsmith.program.process.program import Program
from warpsmith.program.regions import extract_region
from warpsmith.program.trials import trial, trial_store, trials_total
from warpsmith.program.trials.goal import ProgramGoal
from warpsmith.project import Project
from warpsmith.use import choice

_LEAST_USD = 0.01

MakeKernel = Callable[[PlannedRegion, str, str, float | None], None]
"""Runs a campaign for a region, its definition and a target with the dollars that are left, to its end.

Raises:
    MissingInput: it accepted no version, or has nothing to begin with; its sentence says which.
    WarpsmithError: any other error ends the autopilot.
"""


@dataclass(frozen=True)
class AutopilotSettings:
    """Settings of one run."""

    goal: ProgramGoal | None = None
    """Speedup at which it stops."""
    budget: float | None = None
    """Most dollars that all campaigns of the plan may cost."""
    timeout: float = 600.0
    """Seconds for each request to the program."""


def run_plan(
    project: Project,
    program: Program,
    plan: AutopilotPlan,
    settings: AutopilotSettings,
    make_kernel: MakeKernel,
    tell: Tell,
) -> str:
    """Work on the regions that are left, and return why it stopped; results are written one by one.

    Raises:
        WarpsmithError: what no other region could escape either; what was done stays.
    """
    for region in plan.regions_left:
        if settings.goal and _reaches_goal(project, program, settings, tell):
            return f"the goal of {settings.goal.speedup:g}x is reached"
        left = None if settings.budget is None else settings.budget - _spent(project, plan)
        if left is not None and left < _LEAST_USD:
            return f"the budget of {format_usd(settings.budget or 0)} is spent"
        tell(f"{region.kind} region {region.digest}, {region.share:.1%} of the step")
        result = _work_on_region(project, program, region, settings, left, plan.target, make_kernel, tell)
        plan = plan.model_copy(
            update={"results": (*plan.results, result), "sha256": files.file_sha256(program.path)}
        )
        plans.write_plan(project, program, plan)
    return "all regions of the plan are done"


def program_total(project: Project, program: Program, timeout: float, tell: Tell) -> TrialsTotal | None:
    """Return the total of the program's trials, measured now if the files have changed; None if none was kept."""
    trials = trial_store.program_trials(project, program)
    return trials_total.refresh_total(trials, timeout, tell)


def _reaches_goal(project: Project, program: Program, settings: AutopilotSettings, tell: Tell) -> bool:
    total = program_total(project, program, settings.timeout, tell)
    return settings.goal is not None and total is not None and settings.goal.is_reached(total)


def _spent(project: Project, plan: AutopilotPlan) -> float:
    """Return the dollars that all campaigns for the plan's regions have cost."""
    definitions = accepted_regions.list_definitions(project)
    ops = [definitions[region.digest] for region in plan.regions if region.digest in definitions]
    campaigns = (campaign for op in ops for campaign in store.list_campaigns(project, op))
    return sum(Spent.of(campaign_state.read_state(campaign).spent).usd for campaign in campaigns)


def _work_on_region(
    project: Project,
    program: Program,
    region: PlannedRegion,
    settings: AutopilotSettings,
    left: float | None,
    target: str,
    make_kernel: MakeKernel,
    tell: Tell,
) -> RegionResult:
    op = accepted_regions.list_definitions(project).get(region.digest, "")
    try:
        if not op:
            tell(f"{region.digest}: extracting it")
            op = extract_region.extract_region(
                project, program, region.digest, timeout=settings.timeout, tell=tell
            ).extraction.op
    except (Misuse, BadDefinition, MissingInput) as error:
        return _not_made(region, op, error)
    try:
        make_kernel(region, op, target, left)
    except MissingInput as error:
        if not choice.rank_versions(project, op).get(target):
            return _not_made(region, op, error)
    return _integrate(project, program, region, op, settings, tell)


def _integrate(
    project: Project, program: Program, region: PlannedRegion, op: str, settings: AutopilotSettings, tell: Tell
) -> RegionResult:
    """Try the kernel in the whole step; a program that fails with it is restored."""
    trials = trial_store.program_trials(project, program)
    entry = accepted_regions.integration_entry(op)
    closed = [record.decision for _, record in sorted(trials.records().items()) if record.plan.entry == entry]
    if closed and trials.plan() is None and closed[-1].verdict is TrialVerdict.KEPT:
        return _end(region, op, closed[-1])  # a kill came between its end and the plan's
    try:
        integration = integrate.integrate_kernel(project, op, program, timeout=settings.timeout, tell=tell)
    except (SolutionFailed, TimedOut, MachineLacks, MissingInput) as error:
        if trials.plan() is None:
            return _not_made(region, op, error)
        return _end(region, op, trial.abandon_trial(trials, _clause(error), measured=True).record.decision)
    return _end(region, op, integration.closed.record.decision)


def _end(region: PlannedRegion, op: str, decision: TrialDecision) -> RegionResult:
    end: Literal["kept", "refused"] = "kept" if decision.verdict is TrialVerdict.KEPT else "refused"
    return RegionResult(digest=region.digest, op=op, end=end, reason=decision.reason)


def _not_made(region: PlannedRegion, op: str, error: Exception) -> RegionResult:
    return RegionResult(digest=region.digest, op=op, end="not made", reason=_clause(error))


def _clause(error: Exception) -> str:
    return str(error).rstrip(".")
