"""Rounds over ranks: versions of an operator that several processes compute, each judged against the best one.

A campaign over ranks is a ledger for one operator, target and number of ranks. It has no phases: a round is a
hypothesis, a version and its verdict by `warpsmith ranks`. The folder of a round holds the version as it was
judged, which is what the next one must beat.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self, TypeAlias

from pydantic import Field, model_validator

from warpsmith import files
from warpsmith.campaign import texts
from warpsmith.core.base import Model, Name, Sha256, Slug
from warpsmith.core.evaluation import Verdict
from warpsmith.errors import Misuse
from warpsmith.lab.ranks.models import RankEvaluation
from warpsmith.ledger import repair, signed_file, signing
from warpsmith.ledger.lock import LOCK, hold_lock
from warpsmith.ledger.store import Ledger, StoredRecord
from warpsmith.project import Project

VERSION = "version.py"
"""Name of the version's copy in the folder of a round."""

FINAL = "final.json"
"""Name of the file of the final race."""


class RankRound(Model):
    """One round over ranks: a version with a verdict on all of them."""

    round: int = Field(ge=1)
    """Number of the round."""
    target: Slug
    """Kind of device."""
    hypothesis: str = Field(min_length=10, max_length=400)
    """Reason for which the version should be faster."""
    best_round: int | None = None
    """Round of the version that it had to beat; null if there was none."""
    evaluation: RankEvaluation
    """Judgement of the version."""
    previous_sha256: Sha256 | None
    """Hash of the round before it; null for the first round."""

    @model_validator(mode="after")
    def _decided(self) -> Self:
        if self.verdict is Verdict.INVALID:
            raise ValueError("a round needs a judgement with a verdict on the version")
        return self

    @property
    def verdict(self) -> Verdict:
        """Verdict of the round; INVALID for a judgement that is none on the version."""
        decision = self.evaluation.decision
        return decision.verdict if decision else Verdict.INVALID


StoredRankRound: TypeAlias = StoredRecord[RankRound]
"""A closed round over ranks as it is on disk."""


class RankStanding(Model):
    """Rounds of a campaign over ranks, and the version that stands."""

    op: Name
    """Name of the operator."""
    target: Slug
    """Kind of device."""
    ranks: int
    """Number of ranks."""
    best_round: int | None
    """Round of the best version; null if none was accepted with the present definition."""
    rounds: tuple[RankRound, ...]
    """Closed rounds in order."""


@dataclass(frozen=True)
class RankLedger(Ledger[RankRound]):
    """The rounds of one operator, target and number of ranks."""

    def verify(self, stored: StoredRankRound, attachments: list[str]) -> StoredRankRound:
        """Check a record's number and its copy of the version; raises CorruptRecord."""
        if stored.record.round != stored.number:
            raise self.corrupt(stored.path, f"says that it is round {stored.record.round}")
        path = stored.folder / VERSION
        if not path.is_file() or files.file_sha256(path) != stored.record.evaluation.provenance.solution_sha256:
            raise self.corrupt(path, "is not the version that was judged")
        return super().verify(stored, attachments)

    @property
    def final_race(self) -> Path:
        """File of the final race, next to the folder of the rounds."""
        return self.folder.parent / FINAL

    def signature_faults(self, records: Sequence[StoredRankRound]) -> list[tuple[Path, str]]:
        """Return the records that are not what their signatures sign, the final race included, with the fault."""
        faults = super().signature_faults(records)
        if self.final_race.is_file():
            fault = signed_file.file_signature_fault(self.final_race, signing.logged_hashes())
            faults += [(self.final_race, fault)] if fault else []
        return faults


@dataclass(frozen=True)
class RankCampaign:
    """The rounds of one operator, target and number of ranks, in their project."""

    project: Project
    """The project."""
    op: str
    """Name of the operator."""
    target: str
    """Kind of device."""
    ranks: int
    """Number of ranks."""

    @property
    def name(self) -> str:
        """Name for messages."""
        return f"{self.op} on {self.ranks} ranks of {self.target}"

    @cached_property
    def ledger(self) -> RankLedger:
        """The store of its rounds: `<devlog>/<op>/ranks/<target>-<ranks>/rounds`."""
        folder = self.project.devlog / self.op / "ranks" / f"{self.target}-{self.ranks}" / "rounds"
        return _rank_ledger(folder)

    def best(self, definition_sha256: str) -> StoredRankRound | None:
        """Return the last accepted round of this definition, whose version the next one must beat.

        Raises:
            CorruptRecord: a record is corrupt.
        """
        return last_accepted_round(self.ledger.read_all(), definition_sha256)

    def accepted(self, definition_sha256: str) -> list[StoredRankRound]:
        """Return the accepted rounds of this definition in order; raises CorruptRecord."""
        return _accepted(self.ledger.read_all(), definition_sha256)

    def standing(self, definition_sha256: str) -> RankStanding:
        """Return all rounds, and which version stands; raises CorruptRecord."""
        rounds = self.ledger.read_all()
        best = last_accepted_round(rounds, definition_sha256)
        return RankStanding(
            op=self.op,
            target=self.target,
            ranks=self.ranks,
            best_round=best.number if best else None,
            rounds=tuple(stored.record for stored in rounds),
        )

    def count_comparisons(self) -> int:
        """Count the judgements against a best version, the next one included; raises CorruptRecord."""
        return 1 + sum(stored.record.best_round is not None for stored in self.ledger.read_all())


def refuse_rank_round(campaign: RankCampaign, hypothesis: str, source: Path, definition_sha256: str) -> None:
    """Raise before a round is judged that could not be closed.

    Raises:
        Misuse: the hypothesis is too short or too long, or an earlier round judged the same version.
        BadEntry: the hypothesis states a figure that no record supports.
        CorruptRecord: a record is corrupt.
    """
    if not 10 <= len(hypothesis) <= 400:
        raise Misuse("A hypothesis has 10 to 400 characters: say in a sentence why the version should be faster.")
    rounds = campaign.ledger.read_all()
    recorded = texts.quantities_of(*(stored.record for stored in rounds))
    texts.refuse_faults(campaign.project, {"hypothesis": hypothesis}, recorded)
    sha256 = files.file_sha256(source)
    for stored in rounds:
        judged = stored.record.evaluation.provenance
        if (judged.solution_sha256, judged.definition_sha256) == (sha256, definition_sha256):
            raise Misuse(
                f"{source} is the version of round {stored.number} ({stored.record.verdict}); change it, or leave"
                " out --round."
            )


def close_rank_round(
    campaign: RankCampaign, hypothesis: str, source: Path, best: StoredRankRound | None, evaluation: RankEvaluation
) -> StoredRankRound:
    """Write a round: its record, the version and the signature appear at once.

    Raises:
        Misuse: the version changed while it was judged.
        CorruptRecord: a record is corrupt.
    """
    content, ledger = source.read_bytes(), campaign.ledger
    if hashlib.sha256(content).hexdigest() != evaluation.provenance.solution_sha256:
        raise Misuse(f"{source} changed while it was judged, so nothing is recorded; judge it again.")
    number = ledger.next_number()
    record = RankRound(
        round=number,
        target=campaign.target,
        hypothesis=hypothesis,
        best_round=best.number if best else None,
        evaluation=evaluation,
        previous_sha256=ledger.last_sha256(),
    )
    return ledger.publish(number, record, {VERSION: content})


def repair_rank_rounds(campaign: RankCampaign) -> list[str]:
    """Move corrupt records to the quarantine; return one sentence for each change."""
    ledger = campaign.ledger
    return [*repair.sweep_ledger(ledger), *repair.quarantine_records(ledger), *repair.acknowledge_missing(ledger)]


@contextmanager
def hold_rank_campaign(campaign: RankCampaign) -> Iterator[None]:
    """Hold the rounds for writing, from the choice of the best version to the record.

    Raises:
        Busy: another process holds them.
        MachineLacks: the disk or its file system failed.
    """
    state = campaign.project.scratch / "ranks"
    files.hide_from_git(state)
    lock = state / f"{campaign.op}-{campaign.target}-{campaign.ranks}{LOCK}"
    with hold_lock(lock, campaign.name, "warpsmith ranks", campaign.ledger.repair):
        yield


def list_rank_campaigns(project: Project) -> list[RankCampaign]:
    """List every campaign over ranks, by operator, target and ranks."""
    campaigns = []
    for folder in sorted(project.devlog.glob("*/ranks/*/rounds")):
        target, _, ranks = folder.parent.name.rpartition("-")
        if target and ranks.isdigit():
            campaigns.append(RankCampaign(project, folder.parents[2].name, target, int(ranks)))
    return campaigns


def list_rank_ledgers(project: Project) -> list[RankLedger]:
    """List the ledgers of every campaign over ranks, by operator, target and ranks."""
    return [campaign.ledger for campaign in list_rank_campaigns(project)]


def _rank_ledger(folder: Path) -> RankLedger:
    target, _, ranks = folder.parent.name.rpartition("-")
    command = f"warpsmith ranks {folder.parents[2].name} --target {target} --ranks {ranks} --repair"
    return RankLedger(folder, RankRound, "round", command)


def last_accepted_round(rounds: Sequence[StoredRankRound], definition_sha256: str) -> StoredRankRound | None:
    """Return the round whose version stands under a definition, None if none does."""
    accepted = _accepted(rounds, definition_sha256)
    return accepted[-1] if accepted else None


def _accepted(rounds: Sequence[StoredRankRound], definition_sha256: str) -> list[StoredRankRound]:
    return [
        stored
        for stored in rounds
        if stored.record.verdict.accepted
        and stored.record.evaluation.provenance.definition_sha256 == definition_sha256
    ]
