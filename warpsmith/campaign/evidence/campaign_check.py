"""Check of one campaign's evidence: what is wrong in its folder, and what other checks need to know of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from warpsmith import files
from warpsmith.campaign.evidence import agent_texts, retimings, stored_evaluations, toolchain
from warpsmith.campaign.evidence.stored_evaluations import StoredEvaluation
from warpsmith.campaign.history import journal
from warpsmith.campaign.history.records import misplaced_verdict
from warpsmith.campaign.history.store import Campaign
from warpsmith.core.base import Model
from warpsmith.core.evaluation import GATE_VERSION
from warpsmith.core.evidence import Older, Stale, UnsupportedText
from warpsmith.errors import CorruptRecord
from warpsmith.project import Project


class BestJudged(Model):
    """Round of a campaign's best version, with the libraries of its judgement."""

    record: str
    """Path of the round's folder in the project."""
    language: str
    """Language of the version."""
    libraries: dict[str, str]
    """Package to version, as the record has them."""


class CampaignCheck(Model):
    """Findings on one campaign; they follow from its folder, its operator's files and the files that it cites."""

    rounds: int
    """Number of its round records that read."""
    races: int
    """Number of its final races: 0 or 1."""
    stale: tuple[Stale, ...]
    """Invalid evidence."""
    doubtful: dict[str, str]
    """File of each stale record, with its name in messages."""
    older: tuple[Older, ...]
    """Records by an older gate."""
    unsupported: tuple[UnsupportedText, ...]
    """Faults in texts of records from before the rule."""
    best: BestJudged | None
    """Round of the best version; null if there is none."""
    records: dict[str, str]
    """Hash of each round record that reads, by its file."""
    cited: dict[str, str]
    """Hash of each file that a text cites by its path in the project; empty if there is no such file."""

    def holds(self, project: Project) -> bool:
        """Return True if the files that texts cite are what they were."""
        return all(cited_sha256(project, name) == sha256 for name, sha256 in self.cited.items())


def check_campaign(campaign: Campaign) -> CampaignCheck:
    """Read and check all of a campaign; nothing is written."""
    project = campaign.project
    judged, stale = stored_evaluations.read_evaluations(campaign)
    # A record that does not read is stale as well, and so is a page that cites it.
    doubtful = {str(project.root / finding.path): finding.path for finding in stale}
    best = best_evaluation(judged)
    cited: set[str] = set()
    faults = list(agent_texts.check_campaign_texts(project, campaign, judged, cited))
    findings, changed, older = check_evaluations(project, judged, best)
    rounds = [stored.stored_round for stored in judged if stored.stored_round]
    stale += [*findings, *(fault for fault in faults if isinstance(fault, Stale)), *_vanished_parts(campaign)]
    for stored in rounds:
        if fault := misplaced_verdict(campaign.manifest, stored.record.evaluation):
            stale.append(Stale(path=project.relative(stored.path), message=f"{campaign.name} {fault}."))
    for path, fault in campaign.ledger.signature_faults(rounds):
        stale.append(signature_finding(project, path, fault))
    stale += retimings.list_retiming_faults(campaign, rounds)
    return CampaignCheck(
        rounds=len(rounds),
        races=len(judged) - len(rounds),
        stale=tuple(stale),
        doubtful=doubtful | changed,
        older=tuple(older),
        unsupported=tuple(fault for fault in faults if isinstance(fault, UnsupportedText)),
        best=best_judged(project, best) if best else None,
        records={str(stored.path): stored.sha256 for stored in rounds},
        cited={name: cited_sha256(project, name) for name in sorted(cited)},
    )


def check_evaluations(
    project: Project, judged: list[StoredEvaluation], best: StoredEvaluation | None = None
) -> tuple[list[Stale], dict[str, str], list[Older]]:
    """Return the findings on evaluations whose files changed, the files of those, and those of an older gate."""
    stale: list[Stale] = []
    doubtful: dict[str, str] = {}
    older: list[Older] = []
    for stored in judged:
        shown_path = project.relative(stored.path)
        changes = stored_evaluations.list_changes(project, stored)
        stale += [Stale(path=shown_path, message=message) for message in changes]
        if changes:
            doubtful[str(stored.path)] = shown_path
        try:
            older += _older(project, stored, stored is best)
        except CorruptRecord as error:
            stale.append(stored_evaluations.corrupt_finding(project, stored.reruns, error))
    return stale, doubtful, older


def best_evaluation(judged: list[StoredEvaluation]) -> StoredEvaluation | None:
    """Return the round of a campaign's best version; None if there is none."""
    rounds = [stored for stored in judged if stored.stored_round and stored.stored_round.record.verdict.accepted]
    return rounds[-1] if rounds else None


def best_judged(project: Project, best: StoredEvaluation) -> BestJudged:
    """Return the round of a best version with the libraries that decide."""
    evaluation = best.evaluation
    return BestJudged(
        record=project.relative(best.path.parent),
        language=evaluation.language,
        libraries=toolchain.judged_under(evaluation),
    )


def signature_finding(project: Project, path: Path, fault: str) -> Stale:
    """Return the finding on a record that is not what was signed."""
    shown_path = project.relative(path)
    return Stale(path=shown_path, message=f"{shown_path} {fault}; restore it from git.")


def cited_sha256(project: Project, name: str) -> str:
    """Return the hash of a file that a text cites; empty if there is none."""
    path = project.root / name
    return files.file_sha256(path) if path.is_file() else ""


def _older(project: Project, stored: StoredEvaluation, best: bool) -> Iterator[Older]:
    """Describe an evaluation of an older gate. Raises CorruptRecord."""
    rerun, version = stored_evaluations.last_renewal(stored), stored.evaluation.provenance.gate_version
    if version >= GATE_VERSION:
        return
    if rerun and rerun.evaluation.provenance.gate_version < GATE_VERSION:
        rerun = None
    yield Older(
        record=project.relative(stored.stored_round.folder if stored.stored_round else stored.path),
        solution=stored.evaluation.provenance.solution,
        gate_version=version,
        best=best,
        renewed=rerun,
    )


def _vanished_parts(campaign: Campaign) -> list[Stale]:
    """List the parts of the open round that were written and are gone or were edited."""
    project = campaign.project
    try:
        lines = campaign.journal()
    except CorruptRecord as error:
        return [stored_evaluations.corrupt_finding(project, campaign.folder / journal.JOURNAL, error)]
    stale = []
    for line in journal.vanished_parts(lines, campaign.ledger.next_number(), campaign.open):
        shown_path = project.relative(campaign.open / f"{line.part}.json")
        judged = f"; {line.solution} counts as judged" if line.solution else ""
        message = (
            f"{shown_path} is gone or was edited since it was written{judged}; run"
            f" `warpsmith resume --campaign {campaign.name}`."
        )
        stale.append(Stale(path=shown_path, message=message))
    return stale
