"""Next action for a compiled program: its regions, once no recommendation of the analysis can be applied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warpsmith.core.trial import NextAction, TrialRecord, TrialVerdict
from warpsmith.program.analysis import region_file
from warpsmith.program.compiled.models import RegionRow, StepRegions
from warpsmith.program.operators import accepted_regions
from warpsmith.program.trials import next_action
from warpsmith.program.trials.next_action import ProgramState
from warpsmith.project import Project

LEAST_SHARE = 0.02
"""Share of the step from which on a region is proposed. Chosen: twice the least gain that a trial can keep."""


@dataclass(frozen=True)
class DueRegion:
    """A region that has no verdict in the step yet."""

    row: RegionRow
    """The region."""
    op: str
    """Its definition; empty if it has none."""


def choose_program_action(project: Project, state: ProgramState) -> NextAction:
    """Return the next action for a program; reads records and runs nothing. Raises CorruptRecord."""
    action = next_action.choose_action(state)
    analysis = state.analysis
    if action.action not in ("work", "finished") or analysis is None:
        return action
    if not analysis.facts.compiled_graphs:
        return action
    regions, arguments = region_file.read_regions(project, state.name), next_action.analysis_arguments(analysis)
    if regions is None or _is_outdated(state, regions):
        reason = "the step is compiled, and its regions were not listed since it last changed"
        return _region_action(action, reason, f"warpsmith program regions {arguments}")
    due = next(list_due_regions(project, regions, state.records), None)
    if due is None:
        return action
    row, op = due.row, due.op
    if not op:
        command = f"warpsmith program extract --region {row.digest} {arguments}"
        return _region_action(action, _describe(row), command)
    from warpsmith.use import choice  # most programs wait for no kernel

    if choice.rank_versions(project, op):
        reason = f"{_describe(row)}; {op} has an accepted version"
        return _region_action(action, reason, f"warpsmith program integrate {op} {arguments}")
    return _region_action(
        action, f"{_describe(row)}; {op} has no accepted version yet",
        f"warpsmith start {op} --target TARGET --language LANGUAGE",
    )  # fmt: skip


def list_due_regions(
    project: Project, regions: StepRegions, records: Sequence[TrialRecord]
) -> Iterator[DueRegion]:
    """Yield the regions of a step that are worth a kernel and have no verdict in the step yet, largest first.

    A trial that showed nothing may be repeated, up to `MOST_TRIES` in all.
    """
    definitions = accepted_regions.list_definitions(project)
    tried = [(record.plan.entry, record.decision.verdict) for record in records]
    for row in regions.rows:
        if row.refusal or row.share < LEAST_SHARE:
            continue
        op = definitions.get(row.digest, "")
        verdicts = [verdict for entry, verdict in tried if op and entry == accepted_regions.integration_entry(op)]
        is_open = verdicts and verdicts[-1] is TrialVerdict.INCONCLUSIVE and len(verdicts) < next_action.MOST_TRIES
        if not verdicts or is_open:
            yield DueRegion(row, op)


def _is_outdated(state: ProgramState, regions: StepRegions) -> bool:
    """Return whether an edit other than a kernel's was kept since the regions were listed."""
    return any(
        record.decision.verdict is TrialVerdict.KEPT
        and record.closed > regions.measured
        and not record.plan.entry.startswith(accepted_regions.integration_entry(""))
        for record in state.records
    )


def _describe(row: RegionRow) -> str:
    bound = f", at most {row.ceiling:.2f}x" if row.ceiling is not None else ""
    return f"{row.kind} region {row.digest} takes {row.share:.1%} of the step{bound}"


def _region_action(action: NextAction, reason: str, command: str) -> NextAction:
    return action.model_copy(update={"action": "work", "why": reason, "command": command})
