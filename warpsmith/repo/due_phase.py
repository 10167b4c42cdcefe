"""The phase that is due in a repo campaign, with its command."""

from __future__ import annotations

from warpsmith.campaign.rounds import stagnation
from warpsmith.campaign.rounds.due_phase import DuePhase
from warpsmith.campaign.rounds.loop import Phase, Who
from warpsmith.core.campaign import CHANGE_CATEGORIES, Stagnation
from warpsmith.ledger.store import RECORD
from warpsmith.repo import store
from warpsmith.repo.rounds import RepoState
from warpsmith.repo.worktrees import EDIT


def find_due_repo_phase(state: RepoState) -> DuePhase:
    """Find what is due: a plan, an evaluation of the kernel in the worktree `edit`, or the round's closing."""
    campaign = state.campaign
    option = f"--campaign {campaign.name}"
    if state.verdict:
        command = f'warpsmith repo close --learn "WHAT IT TEACHES" | --nothing "WHY" {option}'
        record = campaign.project.relative(campaign.rounds / f"{state.number:03d}" / RECORD)
        return _due(state, ("lesson", "LEARN", "orchestrator"), "the evaluation", command, record, ())
    if state.plan:
        full = " --full" if state.full_due else ""
        edit = campaign.project.relative(campaign.state / EDIT)
        needs = f"the change, in {', '.join(f'{edit}/{path}' for path in campaign.manifest.contract.kernel)}"
        produces = campaign.project.relative(campaign.open / store.VERDICT)
        row: tuple[str, Phase, Who] = ("verdict", "VERIFY", "lab")
        return _due(state, row, needs, f"warpsmith repo judge{full} {option}", produces, _invalid(state))
    stagnant = _assess(state)
    review = ' --direction "NAME|CATEGORY|EXPECTED"' * (stagnation.DIRECTIONS if stagnant.review else 0)
    command = f'warpsmith repo plan --hypothesis "..." --category CATEGORY --predict 0.2{review} {option}'
    produces = campaign.project.relative(campaign.open / store.PLAN)
    row = ("plan", "STRATEGIZE", "orchestrator")
    categories = (
        f"CATEGORY is one of {', '.join(CHANGE_CATEGORIES)}; `algorithm`: another method, or fewer operations."
    )
    notes = (categories, *stagnation.plan_demands(stagnant, []), _ending(state))
    return _due(state, row, f"the best commit, {state.best[:12]}", command, produces, notes)


def _due(
    state: RepoState,
    row: tuple[str, Phase, Who],
    needs: str,
    command: str,
    produces: str,
    notes: tuple[str, ...],
) -> DuePhase:
    name, phase, actor = row
    return DuePhase(
        campaign=state.campaign.name,
        round=state.number,
        step=name,
        phase=phase,
        who=actor,
        needs=needs,
        command=command,
        produces=produces,
        notes=notes,
    )


def _assess(state: RepoState) -> Stagnation:
    # The repository fixes the kernel's language, so stagnation can only ask for a review.
    return stagnation.assess_stagnation([stored.record.verdict for stored in state.rounds]).model_copy(
        update={"change_forced": False}
    )


def _ending(state: RepoState) -> str:
    option = f"--campaign {state.campaign.name}"
    end = f"`warpsmith repo report {option}`"
    if not state.validated:
        end = f"`warpsmith repo validate {option}`, then {end}"
    return f"To end the campaign instead: {end}."


def _invalid(state: RepoState) -> tuple[str, ...]:
    count = len(list(state.campaign.open.glob("invalid-*.json")))
    note = f"{count} evaluations were INVALID: the machine or the commands failed, not the change."
    return (note,) if count else ()
