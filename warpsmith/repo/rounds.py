"""Rounds of a repo campaign: one hypothesis, one evaluation, one record; each command completes a killed one."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warpsmith import files
from warpsmith.campaign import texts
from warpsmith.campaign.rounds import stagnation
from warpsmith.core.base import Model, this_minute
from warpsmith.core.campaign import Plan, Selection
from warpsmith.core.evaluation import Verdict
from warpsmith.core.repo import (
    Level,
    OpenPlan,
    RepoBaseline,
    RepoEvaluation,
    RepoLesson,
    RepoManifest,
    RepoRecord,
    Workspace,
)
from warpsmith.core.text import Tell
from warpsmith.errors import CorruptRecord, MissingInput, Misuse
from warpsmith.ledger import repair
from warpsmith.ledger.git import campaign_ref
from warpsmith.ledger.store import write_model
from warpsmith.project import Project
from warpsmith.repo import failed_logs, judge, lineage, settings, store
from warpsmith.repo.side_runner import SideRunner
from warpsmith.repo.store import RepoCampaign, StoredRepoRound
from warpsmith.repo.worktrees import EDIT, Repository

FULL_EVERY = 3
"""Every third accepted round is validated on all rows."""

_BASELINE = Plan(
    hypothesis="The kernel as it is in the repository, to improve on.",
    category="baseline",
    predicted_gain=0,
    metric="time_us",
    expected_change=0,
)
_DRY_RUN = ".check"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,119}")


@dataclass(frozen=True)
class RepoState:
    """State of a repo campaign, computed from the files on disk."""

    campaign: RepoCampaign
    """The campaign."""
    rounds: tuple[StoredRepoRound, ...]
    """The closed rounds."""
    plan: OpenPlan | None
    """The open round's plan."""
    verdict: RepoEvaluation | None
    """The open round's evaluation."""

    @property
    def baseline(self) -> RepoBaseline:
        """Measurements of the first round; raises CorruptRecord if it has none."""
        baseline = self.rounds[0].record.baseline if self.rounds else None
        if baseline is None:
            raise CorruptRecord(
                f"{self.campaign.rounds} has no baseline; restore its first round, or start another campaign with"
                " `warpsmith repo start NAME`."
            )
        return baseline

    @property
    def rows(self) -> tuple[str, ...]:
        """Names of all rows of the baseline."""
        return tuple(dict.fromkeys(row.row for row in self.rounds[0].record.judgement.rows))

    @property
    def number(self) -> int:
        """Number of the open round."""
        return self.campaign.ledger.next_number()

    @property
    def best(self) -> str:
        """The commit that the next change has to beat."""
        return lineage.best_commit(self.campaign, self.rounds)

    @property
    def accepted(self) -> list[RepoRecord]:
        """Records of the accepted rounds after the baseline."""
        return [stored.record for stored in self.rounds[1:] if stored.record.commit]

    @property
    def full_due(self) -> bool:
        """True if the next evaluation is full: there are no quick settings, or the third acceptance is near."""
        return self.campaign.manifest.contract.quick is None or (len(self.accepted) + 1) % FULL_EVERY == 0

    @property
    def validated(self) -> bool:
        """True if the best commit was evaluated in full against the start of the campaign."""
        final = self.campaign.final()
        return not self.accepted or (final is not None and final.commit == self.best)


def read_repo_state(campaign: RepoCampaign) -> RepoState:
    """Read the state of a campaign; raises CorruptRecord."""
    rounds, verdict = tuple(campaign.closed_rounds()), campaign.verdict()
    filed = verdict is not None and bool(rounds) and rounds[-1].record.judgement == verdict
    return RepoState(campaign, rounds, None if filed else campaign.plan(), None if filed else verdict)


def check_settings(project: Project, tell: Tell) -> tuple[RepoEvaluation, RepoBaseline]:
    """Try the project settings at HEAD: do everything that a start does, and keep nothing."""
    project_settings = settings.load_settings(project)
    git, head = _committed_kernel(project, project_settings.kernel)
    with store.hold_repo_campaign(project, _DRY_RUN, "check"):
        runner = SideRunner(git, project_settings, store.state_folder(project, _DRY_RUN), tell)
        shutil.rmtree(runner.folder / failed_logs.FOLDER, ignore_errors=True)
        try:
            return judge.judge_baseline(runner, head)
        finally:
            git.remove_worktrees(runner.folder, failed_logs.FOLDER)


def start_repo_campaign(project: Project, name: str, tell: Tell) -> RepoCampaign:
    """Start a campaign at HEAD with its baseline round.

    Raises:
        Misuse: no git repository, uncommitted changes, a used name, or settings or commands that do not fit.
        TimedOut: a command never ends.
    """
    if not _NAME.fullmatch(name):
        raise Misuse(f"`{name}` is no name for a campaign; use lower case letters, digits, `.`, `_` and `-`.")
    project_settings = settings.load_settings(project)
    git, head = _committed_kernel(project, project_settings.kernel)
    with store.hold_repo_campaign(project, name, "start"):
        manifest = RepoManifest(
            campaign=name,
            contract=project_settings,
            contract_sha256=settings.settings_sha256(project_settings),
            start=head,
            branch=campaign_ref(name),
            created=this_minute(),
        )
        campaign = RepoCampaign(project, manifest)
        if (campaign.folder / store.MANIFEST).exists():
            raise Misuse(f"{project.relative(campaign.folder)} exists already; choose another name.")
        if git.commit(manifest.branch) not in (None, head):
            raise Misuse(f"{manifest.branch} exists already, at another commit; choose another name.")
        campaign.folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(campaign.folder)  # a killed start may have left rounds; without a manifest it is no campaign
        evaluation, baseline = judge.judge_baseline(SideRunner(git, project_settings, campaign.state, tell), head)
        record = RepoRecord(
            campaign=name,
            round=1,
            plan=_BASELINE,
            judgement=evaluation,
            baseline=baseline,
            commit=head,
            lesson=RepoLesson(learned=False, text="The baseline teaches nothing yet."),
            opened=manifest.created,
            closed=this_minute(),
            previous_sha256=None,
        )
        campaign.ledger.publish(1, record, {store.CHANGE: b""})
        if git.commit(manifest.branch) is None:
            git.move(manifest.branch, head, None)
        git.worktree(campaign.state / EDIT, head)
        write_model(campaign.folder / store.MANIFEST, manifest)
    return campaign


def plan_round(campaign: RepoCampaign, plan: Plan) -> None:
    """Open a round with one hypothesis.

    Raises:
        Misuse: the open round was judged already, rollbacks in a row ask for a review that the plan lacks, or a
            text of the plan states a figure that no record supports.
    """
    with store.hold_repo_campaign(campaign.project, campaign.name, "plan"):
        state = _settle(campaign)
        if state.verdict:
            raise Misuse(f"Round {state.number} was judged; close it first with `warpsmith repo close`.")
        assessed = stagnation.assess_stagnation([stored.record.verdict for stored in state.rounds])
        # The repository fixes the kernel's language, so stagnation can only ask for a review.
        demands = assessed.model_copy(update={"change_forced": False})
        stagnation.refuse_plan(demands, [], plan, Selection(language="any", because="It is the repository's."))
        recorded = texts.quantities_of(*(stored.record for stored in state.rounds), plan)
        texts.refuse_faults(campaign.project, texts.plan_texts(plan), recorded)
        write_model(campaign.open / store.PLAN, OpenPlan(plan=plan, opened=this_minute()))
        Repository(campaign.project).worktree(campaign.state / EDIT, state.best)


def judge_round(campaign: RepoCampaign, level: Level | None, tell: Tell) -> RepoEvaluation:
    """Judge the kernel's files as they are in the worktree `edit`.

    Raises:
        Misuse: there is no plan, nothing changed, other files changed too, or the settings changed meanwhile.
    """
    with store.hold_repo_campaign(campaign.project, campaign.name, "judge"):
        state, git = _settle(campaign), Repository(campaign.project)
        if state.plan is None or state.verdict:
            command = "repo close" if state.verdict else "repo plan"
            raise Misuse(f"Round {state.number} is not at its evaluation; run `warpsmith {command}`.")
        if level == "quick" and state.full_due:
            quick = campaign.manifest.contract.quick
            reason = "the settings have no `quick`" if quick is None else "as every third one is"
            raise Misuse(f"This round is validated in full, {reason}; leave out --quick.")
        tree = _edited_tree(state, git)
        commit = git.commit_tree(tree, state.best, f"Candidate of round {state.number}\n", state.plan.opened)
        runner = SideRunner(git, campaign.manifest.contract, campaign.state, tell)
        chosen: Level = level or ("full" if state.full_due else "quick")
        evaluation = judge.judge_commit(runner, (state.best, commit), chosen, state.baseline, state.rows)
        if evaluation.decision.verdict is Verdict.INVALID:
            count = len(list(campaign.open.glob("invalid-*.json")))
            write_model(campaign.open / f"invalid-{count + 1}.json", evaluation)
        else:
            files.write_file(campaign.open / store.CHANGE, git.difference(state.best, commit))
            write_model(campaign.open / store.VERDICT, evaluation)
        return evaluation


def validate_best(campaign: RepoCampaign, tell: Tell) -> RepoEvaluation:
    """Judge the best commit in full against the start of the campaign, and keep the evaluation.

    Raises:
        MissingInput: nothing was accepted yet.
    """
    with store.hold_repo_campaign(campaign.project, campaign.name, "validate"):
        state, git = _settle(campaign), Repository(campaign.project)
        if not state.accepted:
            raise MissingInput(f"{campaign.name} has no accepted round yet; run `warpsmith repo next`.")
        runner = SideRunner(git, campaign.manifest.contract, campaign.state, tell)
        sides = campaign.manifest.start, state.best
        evaluation = judge.judge_commit(
            runner, sides, "full", state.baseline, state.rows, than="the campaign's start"
        )
        if evaluation.decision.verdict is not Verdict.INVALID:
            write_model(campaign.folder / store.FINAL, evaluation)
        return evaluation


def close_repo_round(campaign: RepoCampaign, lesson: RepoLesson) -> RepoRecord:
    """Close the judged round: an accepted change becomes a commit on the branch, a rejected one stays a diff.

    Raises:
        Misuse: there is no evaluation, or the branch cannot be moved.
        BadEntry: the lesson states a figure that no record supports, or contradicts the verdict.
    """
    with store.hold_repo_campaign(campaign.project, campaign.name, "close"):
        state, git = _settle(campaign), Repository(campaign.project)
        if state.plan is None or state.verdict is None:
            raise Misuse(f"Round {state.number} was not judged; run `warpsmith repo next`.")
        accepted, minute = state.verdict.decision.verdict.accepted, this_minute()
        recorded = texts.quantities_of(*(stored.record for stored in state.rounds), state.plan.plan, state.verdict)
        texts.refuse_faults(campaign.project, {"lesson": lesson.text}, recorded, accepted)
        if accepted:
            git.refuse_checked_out(campaign.manifest.branch, "warpsmith repo close")
            commit = lineage.commit_round(campaign, git, state.plan.plan, state.verdict, state.number, minute)
        record = RepoRecord(
            campaign=campaign.name,
            round=state.number,
            plan=state.plan.plan,
            judgement=state.verdict,
            commit=commit if accepted else None,
            lesson=lesson,
            opened=state.plan.opened,
            closed=minute,
            previous_sha256=state.rounds[-1].sha256,
        )
        change = (campaign.open / store.CHANGE).read_bytes()
        campaign.ledger.publish(state.number, record, {store.CHANGE: change})
        _settle(campaign)
        return record


def resume_repo_campaign(campaign: RepoCampaign) -> list[str]:
    """Repair the campaign and return what was done, one sentence each; a second call does nothing."""
    with store.hold_repo_campaign(campaign.project, campaign.name, "resume"):
        return list(_resume(campaign))


def _resume(campaign: RepoCampaign) -> Iterator[str]:
    ledger = campaign.ledger
    parts: dict[str, type[Model]] = {store.PLAN: OpenPlan, store.VERDICT: RepoEvaluation}
    yield from repair.sweep_ledger(ledger)
    yield from repair.quarantine_records(ledger)
    yield from repair.acknowledge_missing(ledger)
    yield from repair.drop_unreadable_parts(ledger, parts)
    yield from repair.drop_unreadable(ledger, campaign.folder / store.FINAL, RepoEvaluation)
    yield from repair.drop_unreadable(ledger, campaign.folder / store.WORKSPACE, Workspace)


def _committed_kernel(project: Project, paths: Sequence[str]) -> tuple[Repository, str]:
    """Return the repository and the commit of HEAD; raises Misuse if the kernel has uncommitted changes."""
    git = Repository(project)
    head = git.head()
    git.refuse_dirty()
    git.require_tracked(head, paths)
    return git, head


def _settle(campaign: RepoCampaign) -> RepoState:
    """Complete what a kill interrupted, then read the state; the caller holds the campaign."""
    git = Repository(campaign.project)
    if settings.settings_sha256(settings.load_settings(campaign.project)) != campaign.manifest.contract_sha256:
        raise Misuse(
            f"The project settings have changed since {campaign.name} began, so its rounds would not compare;"
            " restore them, or start another campaign."
        )
    rounds = campaign.closed_rounds()
    lineage.settle_branch(campaign, git, rounds)
    last, verdict = rounds[-1].record if rounds else None, campaign.verdict()
    if last and verdict == last.judgement:
        _move_edit(campaign, git, last, lineage.best_commit(campaign, rounds))
        campaign.ledger.drop_open()
    return read_repo_state(campaign)


def _move_edit(campaign: RepoCampaign, git: Repository, closed: RepoRecord, best: str) -> None:
    """Bring the worktree `edit` to the best commit; changes since the evaluation stay."""
    worktree, paths = campaign.state / EDIT, campaign.manifest.contract.kernel
    if git.worktree(worktree, best):
        return
    untouched = git.snapshot(worktree, closed.judgement.base, paths) == closed.judgement.tree
    git.follow(worktree, best, paths if untouched else ())


def _edited_tree(state: RepoState, git: Repository) -> str:
    """Write the tree to judge; raises Misuse if it is not a change of the kernel alone, or a known one."""
    worktree, paths = state.campaign.state / EDIT, state.campaign.manifest.contract.kernel
    git.worktree(worktree, state.best)
    others = git.others(worktree, paths)
    if others:
        raise Misuse(
            f"{worktree} has changes other than the kernel ({', '.join(others[:5])}); only {', '.join(paths)} may"
            f" change: restore the others with `git -C {worktree} checkout -- FILE`."
        )
    tree = git.snapshot(worktree, state.best, paths)
    if tree == git.tree_of(state.best):
        raise Misuse(f"The kernel in {worktree} is the unchanged best one; change {', '.join(paths)} there first.")
    for stored in state.rounds:
        if stored.record.judgement.tree == tree and not stored.record.commit:
            raise Misuse(
                f"This exact change was rolled back in round {stored.number}; change it before it is judged."
            )
    return tree
