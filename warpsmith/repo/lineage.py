"""Lineage: one commit an accepted round on the campaign's branch; the branch moves by compare and swap."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from warpsmith.core.base import Minute
from warpsmith.core.campaign import Plan
from warpsmith.core.line import line
from warpsmith.core.repo import RepoJudgement
from warpsmith.errors import Misuse
from warpsmith.repo.store import Kept, RepoCampaign
from warpsmith.repo.worktrees import Repository


def branch(name: str) -> str:
    """A campaign's ref."""
    return f"refs/heads/optimize/{name}"


def best(campaign: RepoCampaign, kept: Sequence[Kept]) -> str:
    """The commit of the last accepted round."""
    return next((k.record.commit for k in reversed(kept) if k.record.commit), campaign.manifest.start)


def settle(campaign: RepoCampaign, git: Repository, kept: Sequence[Kept]) -> None:
    """Bring the branch to the last accepted commit, where a kill came between its record and the branch.

    Raises:
        Misuse: something else moved the branch, or it is checked out.
    """
    ref, wanted = campaign.manifest.branch, best(campaign, kept)
    tip = git.commit(ref)
    if tip == wanted:
        return
    last = next((k.record for k in reversed(kept) if k.record.commit), None)
    if last is None or tip != last.judgement.base:
        raise Misuse(
            f"{ref} is at {tip or 'no commit'}, and the best accepted commit of {campaign.name} is {wanted}:"
            f" something else moved it; put it back with `git update-ref {ref} {wanted}`."
        )
    move(campaign, git, wanted, tip)


def move(campaign: RepoCampaign, git: Repository, new: str, old: str) -> None:
    """Move the branch; raises Misuse where it is no more where it was, or is checked out."""
    ref = campaign.manifest.branch
    refuse_checked_out(git, ref)
    if not git.move(ref, new, old):
        raise Misuse(f"{ref} moved while the round was closed; put it back to {old}, then run the command again.")


def refuse_checked_out(git: Repository, ref: str) -> None:
    """Raise Misuse where a branch is checked out: moving it would change that checkout under its user's feet."""
    place = git.checked_out(ref)
    if place:
        raise Misuse(f"{ref} is checked out in {place}; switch that checkout to another branch, then try again.")


def commit(
    campaign: RepoCampaign, git: Repository, plan: Plan, judgement: RepoJudgement, number: int, minute: Minute
) -> str:
    """The commit of an accepted round; the same arguments give the same one."""
    names = ", ".join(PurePosixPath(path).name for path in campaign.manifest.contract.kernel)
    aggregate = judgement.aggregate
    gain = f"{aggregate.speedup - 1:+.1%}".replace("%", " %") if aggregate else "no gain measured"
    rows = [
        f"  {line(row.row)} [{line(row.metric)}]: {row.before:.6g} -> {row.after:.6g},"
        f" {row.speedup:.3f}x [{row.interval.low:.3f}, {row.interval.high:.3f}]"
        for row in judgement.rows
    ]
    message = "\n".join(
        (
            f"{names}: {gain} (round {number} of {campaign.name})",
            "",
            f"Hypothesis: {line(plan.hypothesis)}",
            "",
            f"Result: {judgement.decision.verdict}: {line(judgement.decision.reason)}",
            "",
            f"Details: {judgement.level} validation; base -> candidate, medians of interleaved runs",
            *rows,
            "",
            f"Campaign: {campaign.name}",
            f"Round: {number}",
            f"Base: {judgement.base}",
            f"Diff-Sha256: {judgement.diff_sha256}",
            f"Contract-Sha256: {judgement.contract_sha256}",
            "",
        )
    )
    return git.commit_tree(judgement.tree, judgement.base, message, minute)
