"""Lineage: one commit for each accepted round, on the campaign's own branch."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from warpsmith.campaign.history import records, solutions
from warpsmith.campaign.history.manifests import MANIFEST, SEAL
from warpsmith.campaign.history.records import STRUCK, StoredRound
from warpsmith.campaign.history.store import Campaign
from warpsmith.core.text import to_one_line
from warpsmith.errors import Misuse
from warpsmith.ledger.git import Git, campaign_ref, campaign_refs
from warpsmith.ledger.store import DIGEST

ATTEMPTS = 5
"""Number of times that the branch is read again after another process moved it."""

RENDERED = ".md"
"""Suffix of the pages next to a record, which are rendered from it and not committed."""


@dataclass(frozen=True)
class CommittedRound:
    """A round on the branch."""

    commit: str
    """The commit of the round."""
    round: int
    """The round's number."""
    sha256: str
    """Hash of its record."""


def rounds_on_branch(campaign: Campaign) -> list[CommittedRound]:
    """List the rounds that the branch holds, here or as it was fetched, by their numbers.

    Raises:
        Misuse: outside a git repository.
    """
    return sorted(_find_in_refs(Git(campaign.project.root), campaign), key=lambda committed: committed.round)


def sync_branch(campaign: Campaign) -> list[str]:
    """Commit the rounds whose versions stand and that the branch lacks, in order, then the strikes; return one
    sentence each.

    A branch that does not exist yet begins where it was fetched from another repository, else at HEAD. A second
    call changes nothing.

    Raises:
        Misuse: not a git repository, the branch is checked out, or git refuses.
        CorruptRecord: a record on disk is corrupt.
    """
    git, ref = Git(campaign.project.root), campaign_ref(campaign.name)
    rounds = campaign.closed_rounds()
    actions: list[str] = []
    for _ in range(ATTEMPTS):
        tip = git.commit(ref)
        if tip is None and (start := _first_commit(git, campaign)):
            git.move(ref, start, None)
            tip = git.commit(ref)
        committed = {commit.sha256 for commit in _find_commits(git, campaign, tip)}
        struck = {commit.sha256 for commit in _find_commits(git, campaign, tip, "Struck")}
        pending = [r for r in rounds if r.record.verdict.stands and r.sha256 not in committed]
        pending += [r for r in rounds if r.record.struck and r.sha256 in committed and r.sha256 not in struck]
        if not pending:
            return actions
        git.refuse_checked_out(ref, campaign.ledger.repair)
        new = _commit(git, campaign, pending[0], tip)
        if git.move(ref, new, tip):
            subject = "the strike of round" if pending[0].record.struck else "round"
            actions.append(f"committed {subject} {pending[0].record.round} as {new[:12]}")
            return actions + sync_branch(campaign)
    raise Misuse(f"{ref} keeps moving; stop the process that moves it, then run `{campaign.ledger.repair}`.")


def committed_files(campaign: Campaign, committed: CommittedRound) -> dict[str, bytes]:
    """Read the files of a round's folder as the branch holds them, a later strike included."""
    git = Git(campaign.project.root)
    folder = git.path(campaign.ledger.folder_of(committed.round))
    contents = git.files(committed.commit, folder)
    for strike in _find_in_refs(git, campaign, "Struck"):
        if strike.sha256 == committed.sha256:
            struck = git.files(strike.commit, folder)
            contents |= {name: struck[name] for name in (STRUCK, DIGEST)}
    return contents


def _first_commit(git: Git, campaign: Campaign) -> str | None:
    """Return the commit at which a new branch of a campaign begins."""
    return git.commit(next(iter(campaign_refs(git, campaign.name)), "HEAD"))


def _find_in_refs(git: Git, campaign: Campaign, trailer: str = "Round") -> list[CommittedRound]:
    """List the commits of `_find_commits` in every ref of the branch, each record once."""
    commits: dict[tuple[int, str], CommittedRound] = {}
    for ref in campaign_refs(git, campaign.name):
        for committed in _find_commits(git, campaign, git.commit(ref), trailer):
            commits.setdefault((committed.round, committed.sha256), committed)
    return list(commits.values())


def _find_commits(git: Git, campaign: Campaign, tip: str | None, trailer: str = "Round") -> list[CommittedRound]:
    """List the commits of the campaign that have a trailer, `Round` or `Struck`, with a round's number."""
    if tip is None:
        return []
    commits = []
    for commit, trailers in git.log(tip, f"^Campaign: {campaign.name}$"):
        number, sha256 = trailers.get(trailer, ""), trailers.get("Record-Sha256", "")
        if trailers.get("Campaign") == campaign.name and number.isdigit() and sha256:
            commits.append(CommittedRound(commit, int(number), sha256))
    return commits


def _commit(git: Git, campaign: Campaign, stored: StoredRound, parent: str | None) -> str:
    record = stored.record
    solution = solutions.find_solution(campaign.project, campaign.manifest.target_op, record.solution)
    paths = sorted(path for path in stored.folder.iterdir() if path.is_file() and path.suffix != RENDERED)
    paths += [path for name in (MANIFEST, SEAL) if (path := campaign.folder / name).is_file()]
    blobs = dict(zip(paths, git.blobs(paths), strict=True))
    entries = {git.path(path): blob for path, blob in blobs.items()}
    # The version is committed as it was judged, even if its file has changed since.
    judged = records.judged_file(stored, solution.path.parents[1])
    entries[git.path(solution.path)] = blobs.get(judged) or git.blobs([judged])[0]
    index = Git.index_folder(campaign.folder)
    try:
        tree = git.tree(parent, entries, index)
    finally:
        shutil.rmtree(index, ignore_errors=True)
    minute = record.struck.at if record.struck else record.closed
    return git.commit_tree(tree, parent, _message(campaign, stored), minute)


def _message(campaign: Campaign, stored: StoredRound) -> str:
    record, manifest = stored.record, campaign.manifest
    language, version = solutions.parse_version_name(record.solution)
    gain = "baseline" if record.outcome.gain is None else f"{record.outcome.gain:+.1%}".replace("%", " %")
    gain = "UNTIMED" if record.evaluation.port else gain
    gain += " in joules a call" if record.evaluation.energy and record.outcome.gain is not None else ""
    paragraphs = [
        f"Hypothesis: {record.plan.hypothesis}",
        f"Result: {record.evaluation.decision.verdict}: {record.evaluation.decision.reason}",
    ]
    if record.struck:
        gain, paragraphs = "struck", [f"Reason: {record.struck.reason}"]
    return "\n".join(
        (
            f"{manifest.target_op} {language} {version}: {gain} (round {record.round}, {manifest.target})",
            "",
            # Each text is a paragraph of one line, so that none of it can pass for a trailer.
            *(part for text in paragraphs for part in (to_one_line(text), "")),
            f"Campaign: {campaign.name}",
            f"{'Struck' if record.struck else 'Round'}: {record.round}",
            f"Record-Sha256: {stored.sha256}",
            "",
        )
    )
