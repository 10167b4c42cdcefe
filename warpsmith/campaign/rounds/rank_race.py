"""Final race over ranks: the best version beside the first one and peers, each in new groups of processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from warpsmith.campaign.rounds.rank_rounds import VERSION, RankCampaign, StoredRankRound
from warpsmith.core.base import Model, Sha256
from warpsmith.core.evaluation import Verdict
from warpsmith.errors import MachineFailed, MissingInput
from warpsmith.lab.ranks.judge import RankRequest
from warpsmith.lab.ranks.models import RankEvaluation
from warpsmith.ledger import signed_file

ALONE = "alone"
"""Name of the judgement of a best version that has no rival: it is the first one, and no peer was named."""


class RankRace(Model):
    """Race of the best version over ranks."""

    round: int = Field(ge=1)
    """Round of the version."""
    record_sha256: Sha256
    """Hash of that round's record."""
    judgements: dict[str, RankEvaluation]
    """Judgement of the version beside each rival: `round 1`, or the file of a peer."""

    @property
    def correct(self) -> bool:
        """True if the version was right in every judgement."""
        return all(each.correct for each in self.judgements.values())


def race_best_version(
    campaign: RankCampaign,
    request: RankRequest,
    peers: Sequence[Path],
    judge: Callable[[RankRequest], RankEvaluation],
) -> RankRace:
    """Judge the best version again beside the first accepted one and peers, and write the race, signed.

    Args:
        campaign: the rounds, which the caller holds.
        request: conditions; its version is replaced.
        peers: files of further versions.
        judge: judges a version over ranks.

    Raises:
        MissingInput: no version stands.
        MachineFailed: the machine or a rival failed; nothing is written.
        CorruptRecord: a record is corrupt.
    """
    accepted = campaign.accepted(request.file.sha256)
    if not accepted:
        raise MissingInput(f"{campaign.name} has no accepted version yet; `--round` judges one.")
    best, first = accepted[-1], accepted[0]
    rivals: dict[str, Path | None] = {}
    if best is not first:
        rivals[f"round {first.number}"] = first.folder / VERSION
    rivals |= {campaign.project.relative(path.resolve()): path for path in peers}
    judgements = {}
    for name, rival in (rivals or {ALONE: None}).items():
        request.tell(f"final race beside {name}")
        evaluation = judge(replace(request, source=best.folder / VERSION, against=rival))
        if evaluation.decision is None or evaluation.decision.verdict is Verdict.INVALID:
            reason = evaluation.decision.reason if evaluation.decision else "it was not timed"
            raise MachineFailed(f"The final race beside {name} is INVALID: {reason.rstrip('.')}. Race again.")
        judgements[name] = evaluation
    race = RankRace(round=best.number, record_sha256=best.sha256, judgements=judgements)
    signed_file.write_signed_file(rank_race_path(campaign), race.model_dump_json(indent=2).encode() + b"\n")
    return race


def read_rank_race(campaign: RankCampaign, best: StoredRankRound) -> RankRace | None:
    """Read the final race of a round's version, None if it was not raced; raises CorruptRecord."""
    race = campaign.ledger.read_model(rank_race_path(campaign), RankRace, f"rm {rank_race_path(campaign)}")
    return race if race and race.record_sha256 == best.sha256 else None


def rank_race_path(campaign: RankCampaign) -> Path:
    """Return the file of the final race."""
    return campaign.ledger.final_race
