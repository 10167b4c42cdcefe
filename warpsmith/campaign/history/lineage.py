"""Lineage: one commit an accepted round on the campaign's own branch, by git's plumbing alone.

The user's index, hooks, stash, HEAD and checkout are never touched; the branch moves by compare and swap.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from warpsmith.campaign.history import solutions
from warpsmith.campaign.history.records import DIGEST, STRUCK, Kept
from warpsmith.campaign.history.store import Campaign
from warpsmith.core.line import line
from warpsmith.errors import Misuse
from warpsmith.ledger.git import Git

ATTEMPTS = 5
"""Times a branch that moved meanwhile is read again."""

RENDERED = ".md"
"""Pages beside a record are rendered from it and not committed."""


@dataclass(frozen=True)
class Committed:
    """A round on the branch."""

    commit: str
    """The commit."""
    round: int
    """The round's number."""
    sha256: str
    """Hash of its record."""


def branch(campaign: str) -> str:
    """The campaign's ref."""
    return f"refs/heads/optimize/{campaign}"


def on_branch(campaign: Campaign) -> list[Committed]:
    """The rounds that the branch holds, oldest first; raises Misuse outside a git repository."""
    git = Git(campaign.project.root)
    return _on_branch(git, campaign, git.commit(branch(campaign.name)))


def sync(campaign: Campaign) -> list[str]:
    """Commit the accepted rounds that the branch lacks, in order, then strikes; returns what it did.

    A branch that is not there yet begins at HEAD. Running it again changes nothing.

    Raises:
        Misuse: not a git repository, the branch is checked out, or git refuses.
        CorruptRecord: a record on disk is corrupt.
    """
    git, ref = Git(campaign.project.root), branch(campaign.name)
    rounds = campaign.kept()
    done: list[str] = []
    for _ in range(ATTEMPTS):
        tip = git.commit(ref)
        if tip is None and (head := git.commit("HEAD")):
            git.move(ref, head, None)
            tip = git.commit(ref)
        there = {committed.sha256 for committed in _on_branch(git, campaign, tip)}
        struck = {committed.sha256 for committed in _on_branch(git, campaign, tip, "Struck")}
        lacking = [kept for kept in rounds if kept.record.verdict.accepted and kept.sha256 not in there]
        lacking += [k for k in rounds if k.record.struck and k.sha256 in there and k.sha256 not in struck]
        if not lacking:
            return done
        _refuse_checked_out(git, ref)
        new = _commit(git, campaign, lacking[0], tip)
        if git.move(ref, new, tip):
            what = "the strike of round" if lacking[0].record.struck else "round"
            done.append(f"committed {what} {lacking[0].record.round} as {new[:12]}")
            return done + sync(campaign)
    raise Misuse(f"{ref} keeps moving; stop what moves it, then run `warpsmith resume`.")


def contents(campaign: Campaign, committed: Committed) -> dict[str, bytes]:
    """The files of a round's folder as the branch holds them, with what struck it later."""
    git = Git(campaign.project.root)
    folder = git.path(campaign.rounds / f"{committed.round:03d}")
    found = git.files(committed.commit, folder)
    for strike in _on_branch(git, campaign, git.commit(branch(campaign.name)), "Struck"):
        if strike.sha256 == committed.sha256:
            then = git.files(strike.commit, folder)
            found |= {name: then[name] for name in (STRUCK, DIGEST)}
    return found


def _on_branch(git: Git, campaign: Campaign, tip: str | None, trailer: str = "Round") -> list[Committed]:
    """The commits that have a trailer, `Round` or `Struck`, with a round's number."""
    if tip is None:
        return []
    found = []
    for commit, trailers in git.log(tip, f"^Campaign: {campaign.name}$"):
        number, sha256 = trailers.get(trailer, ""), trailers.get("Record-Sha256", "")
        if trailers.get("Campaign") == campaign.name and number.isdigit() and sha256:
            found.append(Committed(commit, int(number), sha256))
    return found


def _commit(git: Git, campaign: Campaign, kept: Kept, parent: str | None) -> str:
    record = kept.record
    solution = solutions.at(campaign.project, campaign.manifest.target_op, record.solution)
    paths = sorted(path for path in kept.folder.iterdir() if path.is_file() and path.suffix != RENDERED)
    blobs = dict(zip(paths, git.blobs(paths), strict=True))
    entries = {git.path(path): blob for path, blob in blobs.items()}
    # The version is committed as it was judged, whatever has become of its file since.
    entries[git.path(solution.path)] = blobs[kept.folder / record.snapshot]
    index = Git.index_folder(campaign.folder)
    try:
        tree = git.tree(parent, entries, index)
    finally:
        shutil.rmtree(index, ignore_errors=True)
    when = record.struck.at if record.struck else record.closed
    return git.commit_tree(tree, parent, _message(campaign, kept), when)


def _message(campaign: Campaign, kept: Kept) -> str:
    record, manifest = kept.record, campaign.manifest
    language, version = solutions.parse(record.solution)
    gain = "baseline" if record.outcome.gain is None else f"{record.outcome.gain:+.1%}".replace("%", " %")
    gain += " in joules a call" if record.evaluation.energy and record.outcome.gain is not None else ""
    told = [
        f"Hypothesis: {record.plan.hypothesis}",
        f"Result: {record.evaluation.decision.verdict}: {record.evaluation.decision.reason}",
    ]
    if record.struck:
        gain, told = "struck", [f"Reason: {record.struck.reason}"]
    return "\n".join(
        (
            f"{manifest.target_op} {language} v{version}: {gain} (round {record.round}, {manifest.target})",
            "",
            *(part for text in told for part in (line(text), "")),  # a paragraph each: none is read as a trailer
            f"Campaign: {campaign.name}",
            f"{'Struck' if record.struck else 'Round'}: {record.round}",
            f"Record-Sha256: {kept.sha256}",
            "",
        )
    )


def _refuse_checked_out(git: Git, ref: str) -> None:
    place = git.checked_out(ref)
    if place:
        raise Misuse(
            f"{ref} is checked out in {place}; switch that checkout to another branch, then run"
            " `warpsmith resume`: committing would move it under your feet."
        )
