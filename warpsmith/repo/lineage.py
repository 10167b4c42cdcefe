"""Lineage of a repo campaign: one commit for each accepted round, on the campaign's branch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from warpsmith.core.base import Minute
from warpsmith.core.campaign import Plan
from warpsmith.core.repo import RepoEvaluation
from warpsmith.core.text import to_one_line
from warpsmith.errors import Misuse
from warpsmith.repo.store import RepoCampaign, StoredRepoRound
from warpsmith.repo.worktrees import Repository


def best_commit(campaign: RepoCampaign, rounds: Sequence[StoredRepoRound]) -> str:
    """Commit of the last accepted round; the start of the campaign if there is none."""
    commits = (stored.record.commit for stored in reversed(rounds))
    return next((commit for commit in commits if commit), campaign.manifest.start)


def settle_branch(campaign: RepoCampaign, git: Repository, rounds: Sequence[StoredRepoRound]) -> None:
    """Move the branch to the last accepted commit if a kill came between its record and the branch.

    Raises:
        Misuse: something else moved the branch, or it is checked out.
    """
    ref, best = campaign.manifest.branch, best_commit(campaign, rounds)
    tip = git.commit(ref)
    if tip == best:
        return
    last = next((stored.record for stored in reversed(rounds) if stored.record.commit), None)
    if last is None or tip != last.judgement.base:
        raise Misuse(
            f"{ref} is at {tip or 'no commit'}, and the best accepted commit of {campaign.name} is {best}:"
            f" something else moved it; put it back with `git update-ref {ref} {best}`."
        )
    git.refuse_checked_out(ref, campaign.ledger.repair)
    if not git.move(ref, best, tip):
        raise Misuse(f"{ref} moved while the round was closed; put it back to {tip}, then run the command again.")


def commit_round(
    campaign: RepoCampaign, git: Repository, plan: Plan, evaluation: RepoEvaluation, number: int, minute: Minute
) -> str:
    """Write the commit of an accepted round and return its name; the same arguments give the same commit."""
    names = ", ".join(PurePosixPath(path).name for path in campaign.manifest.contract.kernel)
    aggregate = evaluation.aggregate
    gain = f"{aggregate.speedup - 1:+.1%}".replace("%", " %") if aggregate else "no gain measured"
    rows = [
        f"  {to_one_line(row.row)} [{to_one_line(row.metric)}]: {row.before:.6g} -> {row.after:.6g},"
        f" {row.speedup:.3f}x [{row.interval.low:.3f}, {row.interval.high:.3f}]"
        for row in evaluation.rows
    ]
    message = "\n".join(
        (
            f"{names}: {gain} (round {number} of {campaign.name})",
            "",
            f"Hypothesis: {to_one_line(plan.hypothesis)}",
            "",
            f"Result: {evaluation.decision.verdict}: {to_one_line(evaluation.decision.reason)}",
            "",
            f"Details: {evaluation.level} validation; base -> candidate, medians of interleaved runs",
            *rows,
            "",
            f"Campaign: {campaign.name}",
            f"Round: {number}",
            f"Base: {evaluation.base}",
            f"Diff-Sha256: {evaluation.diff_sha256}",
            f"Contract-Sha256: {evaluation.contract_sha256}",
            "",
        )
    )
    return git.commit_tree(evaluation.tree, evaluation.base, message, minute)
