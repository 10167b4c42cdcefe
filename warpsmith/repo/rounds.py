"""Rounds: one hypothesis, one judgement, one record each; what a kill interrupts, the next command takes up."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith import files
from warpsmith.campaign.rounds import stagnation
from warpsmith.core.base import this_minute
from warpsmith.core.campaign import Plan, Selection
from warpsmith.core.evaluation import Verdict
from warpsmith.core.repo import (
    Baseline,
    Level,
    OpenPlan,
    RepoJudgement,
    RepoLesson,
    RepoManifest,
    RepoRecord,
)
from warpsmith.errors import CorruptRecord, MissingInput, Misuse
from warpsmith.project import Project
from warpsmith.repo import contract, judgement, lineage, store
from warpsmith.repo.store import Kept, RepoCampaign
from warpsmith.repo.worktrees import EDIT, Repository
from warpsmith.repo.yard import Tell, Yard

FULL_EVERY = 3
"""Every so manieth accepted round is validated at all rows."""

_BASELINE = Plan(
    hypothesis="The kernel as it is in the repository, to improve on.",
    category="baseline",
    predicted_gain=0,
    metric="time_us",
    expected_change=0,
)
_CHECK = ".check"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,119}")


@dataclass(frozen=True)
class State:
    """Where a campaign stands; computed from what is on disk."""

    campaign: RepoCampaign
    """Which."""
    kept: tuple[Kept, ...]
    """The closed rounds."""
    plan: OpenPlan | None
    """The open round's plan."""
    verdict: RepoJudgement | None
    """The open round's judgement."""

    @property
    def baseline(self) -> Baseline:
        """What the first round fixed; raises CorruptRecord."""
        found = self.kept[0].record.baseline if self.kept else None
        if found is None:
            raise CorruptRecord(
                f"{self.campaign.rounds} has no baseline; take it back, or start another campaign."
            )
        return found

    @property
    def rows(self) -> tuple[str, ...]:
        """All rows of the baseline."""
        return tuple(dict.fromkeys(row.row for row in self.kept[0].record.judgement.rows))

    @property
    def number(self) -> int:
        """The open round's number."""
        return len(self.kept) + 1

    @property
    def best(self) -> str:
        """The commit that the next change has to beat."""
        return lineage.best(self.campaign, self.kept)

    @property
    def accepted(self) -> list[RepoRecord]:
        """The accepted rounds after the baseline."""
        return [k.record for k in self.kept[1:] if k.record.commit]

    @property
    def full_due(self) -> bool:
        """Whether the next judgement is full: there is no quicker one, or an acceptance would be the third."""
        return self.campaign.manifest.contract.quick is None or (len(self.accepted) + 1) % FULL_EVERY == 0

    @property
    def validated(self) -> bool:
        """Whether the best commit was judged in full against the one that the campaign began at."""
        final = self.campaign.final()
        return not self.accepted or (final is not None and final.commit == self.best)


def read(campaign: RepoCampaign) -> State:
    """Where the campaign stands; raises CorruptRecord."""
    kept, verdict = tuple(campaign.kept()), campaign.verdict()
    filed = verdict is not None and bool(kept) and kept[-1].record.judgement == verdict
    return State(campaign, kept, None if filed else campaign.plan(), None if filed else verdict)


def check(project: Project, tell: Tell) -> tuple[RepoJudgement, Baseline]:
    """A dry run of the contract at HEAD: everything that `start` does, and nothing is kept."""
    found = contract.load(project)
    git = Repository(project)
    head = git.head()
    git.refuse_dirty()
    git.require_tracked(head, found.kernel)
    with store.hold(project, _CHECK):
        yard = Yard(git, found, store.state_of(project, _CHECK), tell)
        try:
            return judgement.begin(yard, head)
        finally:
            git.remove_worktrees(yard.folder)


def start(project: Project, name: str, tell: Tell) -> RepoCampaign:
    """Start a campaign at HEAD with its baseline round.

    Raises:
        Misuse: no git repository, a dirty one, a taken name, a contract or commands that do not fit.
        TimedOut: a command never ends.
    """
    if not _NAME.fullmatch(name):
        raise Misuse(f"`{name}` is no name for a campaign; take lower case letters, digits, `.`, `_` and `-`.")
    found = contract.load(project)
    git = Repository(project)
    head = git.head()
    git.refuse_dirty()
    git.require_tracked(head, found.kernel)
    with store.hold(project, name):
        manifest = RepoManifest(
            campaign=name,
            contract=found,
            contract_sha256=contract.sha256(found),
            start=head,
            branch=lineage.branch(name),
            created=this_minute(),
        )
        campaign = RepoCampaign(project, manifest)
        if (campaign.folder / store.MANIFEST).exists():
            raise Misuse(f"{project.relative(campaign.folder)} is there already; take another name.")
        if git.commit(manifest.branch) not in (None, head):
            raise Misuse(f"{manifest.branch} is there already, at another commit; take another name.")
        campaign.folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(campaign.folder)  # what a killed start left: no manifest, no campaign
        yard = Yard(git, found, campaign.state, tell)
        judged, baseline = judgement.begin(yard, head)
        campaign.publish(
            RepoRecord(
                campaign=name,
                round=1,
                plan=_BASELINE,
                judgement=judged,
                baseline=baseline,
                commit=head,
                lesson=RepoLesson(learned=False, text="The baseline teaches nothing yet."),
                opened=manifest.created,
                closed=this_minute(),
                previous_sha256=None,
            ),
            b"",
        )
        if git.commit(manifest.branch) is None:
            git.move(manifest.branch, head, None)
        git.worktree(campaign.state / EDIT, head)
        store.write(campaign.folder / store.MANIFEST, manifest)
    return campaign


def plan(campaign: RepoCampaign, made: Plan) -> None:
    """Open a round with one hypothesis.

    Raises:
        Misuse: the open round was judged already, or rollbacks in a row ask for a review that the plan lacks.
    """
    with store.hold(campaign.project, campaign.name):
        now = _settled(campaign)
        if now.verdict:
            raise Misuse(f"Round {now.number} was judged; close it first: `warpsmith repo close`.")
        standing = stagnation.assess([k.record.verdict for k in now.kept])
        # The kernel's language is given here, so only the review is asked for.
        asked = standing.model_copy(update={"change_forced": False})
        stagnation.refuse_plan(asked, [], made, Selection(language="any", because="It is the repository's."))
        store.write(campaign.open / store.PLAN, OpenPlan(plan=made, opened=this_minute()))
        Repository(campaign.project).worktree(campaign.state / EDIT, now.best)


def judge(campaign: RepoCampaign, level: Level | None, tell: Tell) -> RepoJudgement:
    """Judge the kernel's files as they are in the worktree `edit`.

    Raises:
        Misuse: there is no plan, nothing changed, more than the kernel did, or the contract changed meanwhile.
    """
    with store.hold(campaign.project, campaign.name):
        now, git = _settled(campaign), Repository(campaign.project)
        if now.plan is None or now.verdict:
            todo = "repo close" if now.verdict else "repo plan"
            raise Misuse(f"Round {now.number} is not at its judgement; run `warpsmith {todo}`.")
        if level == "quick" and now.full_due:
            why = "the contract has no `quick`" if campaign.manifest.contract.quick is None else "every third is"
            raise Misuse(f"This round is validated in full, {why}; leave out --quick.")
        tree = _to_judge(now, git)
        commit = git.commit_tree(tree, now.best, f"Candidate of round {now.number}\n", now.plan.opened)
        yard = Yard(git, campaign.manifest.contract, campaign.state, tell)
        chosen: Level = level or ("full" if now.full_due else "quick")
        judged = judgement.judge(yard, (now.best, commit), chosen, now.baseline, now.rows)
        if judged.decision.verdict is Verdict.INVALID:
            count = len(list(campaign.open.glob("invalid-*.json")))
            store.write(campaign.open / f"invalid-{count + 1}.json", judged)
        else:
            files.write(campaign.open / store.CHANGE, git.difference(now.best, commit))
            store.write(campaign.open / store.VERDICT, judged)
        return judged


def validate(campaign: RepoCampaign, tell: Tell) -> RepoJudgement:
    """Judge the best commit in full against the one that the campaign began at, and keep it.

    Raises:
        MissingInput: nothing was accepted yet.
    """
    with store.hold(campaign.project, campaign.name):
        now, git = _settled(campaign), Repository(campaign.project)
        if not now.accepted:
            raise MissingInput(f"{campaign.name} has no accepted round yet; run `warpsmith repo next`.")
        yard = Yard(git, campaign.manifest.contract, campaign.state, tell)
        sides = campaign.manifest.start, now.best
        judged = judgement.judge(yard, sides, "full", now.baseline, now.rows, than="the campaign's start")
        if judged.decision.verdict is not Verdict.INVALID:
            store.write(campaign.folder / store.FINAL, judged)
        return judged


def close(campaign: RepoCampaign, lesson: RepoLesson) -> RepoRecord:
    """Close the judged round: an accepted change becomes a commit on the branch, a rolled back one stays a diff.

    Raises:
        Misuse: there is no judgement, or the branch cannot be moved.
    """
    with store.hold(campaign.project, campaign.name):
        now, git = _settled(campaign), Repository(campaign.project)
        if now.plan is None or now.verdict is None:
            raise Misuse(f"Round {now.number} was not judged; run `warpsmith repo next`.")
        accepted, minute = now.verdict.decision.verdict.accepted, this_minute()
        if accepted:
            lineage.refuse_checked_out(git, campaign.manifest.branch)
            commit = lineage.commit(campaign, git, now.plan.plan, now.verdict, now.number, minute)
        record = RepoRecord(
            campaign=campaign.name,
            round=now.number,
            plan=now.plan.plan,
            judgement=now.verdict,
            commit=commit if accepted else None,
            lesson=lesson,
            opened=now.plan.opened,
            closed=minute,
            previous_sha256=now.kept[-1].sha256,
        )
        campaign.publish(record, (campaign.open / store.CHANGE).read_bytes())
        _settled(campaign)
        return record


def _settled(campaign: RepoCampaign) -> State:
    """Take up what a kill interrupted, then read; the caller holds the campaign."""
    git = Repository(campaign.project)
    if contract.sha256(contract.load(campaign.project)) != campaign.manifest.contract_sha256:
        raise Misuse(
            f"The contract has changed since {campaign.name} began, so its rounds would not compare; put it back,"
            " or start another campaign."
        )
    kept = campaign.kept()
    lineage.settle(campaign, git, kept)
    last, verdict = kept[-1].record if kept else None, campaign.verdict()
    if last and verdict == last.judgement:
        _move_edit(campaign, git, last, lineage.best(campaign, kept))
        campaign.drop_open()
    return read(campaign)


def _move_edit(campaign: RepoCampaign, git: Repository, closed: RepoRecord, best: str) -> None:
    """Bring the worktree `edit` to the best commit; what was changed there since the judgement stays as it is."""
    place, paths = campaign.state / EDIT, campaign.manifest.contract.kernel
    if git.worktree(place, best):
        return
    untouched = git.snapshot(place, closed.judgement.base, paths) == closed.judgement.tree
    git.follow(place, best, paths if untouched else ())


def _to_judge(now: State, git: Repository) -> str:
    """The tree to be judged; raises Misuse where it is none."""
    campaign, place = now.campaign, now.campaign.state / EDIT
    paths = campaign.manifest.contract.kernel
    git.worktree(place, now.best)
    others = git.others(place, paths)
    if others:
        raise Misuse(
            f"{place} has changes beside the kernel ({', '.join(others[:5])}); only {', '.join(paths)} may change:"
            f" put the others back with `git -C {place} checkout -- FILE`."
        )
    tree = git.snapshot(place, now.best, paths)
    if tree == git.tree_of(now.best):
        raise Misuse(f"The kernel in {place} is the best one as it is; change {', '.join(paths)} there first.")
    _refuse_known(now.kept, tree)
    return tree


def _refuse_known(kept: Sequence[Kept], tree: str) -> None:
    for each in kept:
        if each.record.judgement.tree == tree and not each.record.commit:
            raise Misuse(
                f"This very change was rolled back in round {each.record.round}; change it before it is judged."
            )
