"""Suspect: what a review found against an accepted version, kept until its round is closed and can be struck."""

from __future__ import annotations

from pydantic import Field, ValidationError

from warpsmith import files
from warpsmith.campaign.history.records import Kept
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.rounds import state
from warpsmith.campaign.rounds import strike as strikes
from warpsmith.core.base import Model
from warpsmith.core.problem import problem
from warpsmith.errors import CorruptRecord

FILE = "suspect.json"
"""In the campaign's folder: the open round's own would be gone when it closes."""


class Suspect(Model):
    """A finding that waits."""

    round: int = Field(ge=1)
    """The number that the round takes when it closes."""
    reason: str = Field(min_length=10)
    """What was found."""


def keep(campaign: Campaign, number: int, reason: str) -> None:
    """Have a round struck as soon as it is closed, whatever becomes of this process."""
    finding = Suspect(round=number, reason=reason)
    files.write(campaign.folder / FILE, finding.model_dump_json(indent=2) + "\n")


def strike(campaign: Campaign) -> Kept | None:
    """Strike the round that waits for it; None where none does, or it is still open. The caller holds `lock.hold`.

    Raises:
        CorruptRecord: the finding does not read.
    """
    path = campaign.folder / FILE
    if not path.is_file():
        return None
    try:
        finding = Suspect.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise CorruptRecord(f"{path} does not validate: {problem(error)}; remove it.") from error
    now = state.read(campaign)
    closed = next((kept.record for kept in now.rounds if kept.record.round == finding.round), None)
    if closed is None or now.open.verdict:
        return None
    struck = strikes.strike(campaign, finding.round, finding.reason) if closed.verdict.accepted else None
    path.unlink()
    return struck
