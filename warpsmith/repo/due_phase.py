"""What is due in a repo campaign, with the command for it."""

from __future__ import annotations

from warpsmith.campaign.rounds import stagnation
from warpsmith.campaign.rounds.due_phase import DuePhase
from warpsmith.campaign.rounds.loop import Phase, Who
from warpsmith.ledger.store import RECORD
from warpsmith.repo import store
from warpsmith.repo.rounds import RepoState
from warpsmith.repo.worktrees import EDIT


def due_repo_phase(now: RepoState) -> DuePhase:
    """What is due: a plan, a judgement of the kernel in the worktree `edit`, or the round's closing."""
    campaign = now.campaign
    option = f"--campaign {campaign.name}"
    if now.verdict:
        command = f'warpsmith repo close --learn "WHAT IT TEACHES" | --nothing "WHY" {option}'
        record = campaign.project.relative(campaign.rounds / f"{now.number:03d}" / RECORD)
        return _step(now, ("lesson", "LEARN", "orchestrator"), "the judgement", command, record, ())
    if now.plan:
        full = " --full" if now.full_due else ""
        edit = campaign.project.relative(campaign.state / EDIT)
        needs = f"the change, in {', '.join(f'{edit}/{path}' for path in campaign.manifest.contract.kernel)}"
        produces = campaign.project.relative(campaign.open / store.VERDICT)
        row: tuple[str, Phase, Who] = ("verdict", "VERIFY", "lab")
        return _step(now, row, needs, f"warpsmith repo judge{full} {option}", produces, _invalid(now))
    command = f'warpsmith repo plan --hypothesis "..." --category CATEGORY --predict 0.2 {option}'
    produces = campaign.project.relative(campaign.open / store.PLAN)
    row = ("plan", "STRATEGIZE", "orchestrator")
    return _step(now, row, f"the best commit, {now.best[:12]}", command, produces, tuple(_ending(now)))


def _step(
    now: RepoState,
    row: tuple[str, Phase, Who],
    needs: str,
    command: str,
    produces: str,
    notes: tuple[str, ...],
) -> DuePhase:
    name, phase, who = row
    return DuePhase(
        campaign=now.campaign.name,
        round=now.number,
        step=name,
        phase=phase,
        who=who,
        needs=needs,
        command=command,
        produces=produces,
        notes=notes,
    )


def _ending(now: RepoState) -> list[str]:
    option = f"--campaign {now.campaign.name}"
    # A kernel in place has one language, so of what stagnation asks only the review holds.
    standing = stagnation.assess_stagnation([k.record.verdict for k in now.rounds]).model_copy(
        update={"change_forced": False}
    )
    ends = f"`warpsmith repo report {option}`"
    if not now.validated:
        ends = f"`warpsmith repo validate {option}`, then {ends}"
    return [*stagnation.plan_demands(standing, []), f"To end the campaign instead: {ends}."]


def _invalid(now: RepoState) -> tuple[str, ...]:
    count = len(list(now.campaign.open.glob("invalid-*.json")))
    return (f"{count} judgements were INVALID: the machine or the commands failed, not the change.",) * (count > 0)
