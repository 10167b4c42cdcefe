"""Finding of a review against an accepted version, stored until the round is closed and can be struck."""

from __future__ import annotations

from pydantic import Field, ValidationError

from warpsmith import files
from warpsmith.campaign.history.records import StoredRound
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.rounds import state
from warpsmith.campaign.rounds import strike as strikes
from warpsmith.core.base import Model
from warpsmith.core.text import describe_error
from warpsmith.errors import CorruptRecord

FILE = "suspect.json"
"""Name in the campaign's folder; the open round's folder is gone after the round closes."""


class SuspectRound(Model):
    """Accepted round that is to be struck."""

    round: int = Field(ge=1)
    """Number of the round."""
    reason: str = Field(min_length=10)
    """Finding of the review."""


def record_suspect(campaign: Campaign, number: int, reason: str) -> None:
    """Record that a round is to be struck once it is closed, even by a later process."""
    finding = SuspectRound(round=number, reason=reason)
    files.write_file(campaign.folder / FILE, finding.model_dump_json(indent=2) + "\n")


def strike_suspect(campaign: Campaign) -> StoredRound | None:
    """Strike the recorded round; returns None if there is none or it is open. The caller holds `hold_campaign`.

    Raises:
        CorruptRecord: the finding does not validate.
    """
    path = campaign.folder / FILE
    if not path.is_file():
        return None
    try:
        finding = SuspectRound.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise CorruptRecord(f"{path} does not validate: {describe_error(error)}; remove it.") from error
    current = state.read_state(campaign)
    closed = next((entry.record for entry in current.rounds if entry.record.round == finding.round), None)
    if closed is None or current.open.verdict:
        return None
    struck = strikes.strike_round(campaign, finding.round, finding.reason) if closed.verdict.stands else None
    path.unlink()
    return struck
