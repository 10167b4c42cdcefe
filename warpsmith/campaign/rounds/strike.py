"""Strike: an accepted version that fails a later review leaves the lineage; its record does not change."""

from __future__ import annotations

from pydantic import ValidationError

from warpsmith.campaign import texts
from warpsmith.campaign.history import lineage, records
from warpsmith.campaign.history.records import StoredRound
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.rounds.state import CampaignState, read_state
from warpsmith.core.base import this_minute
from warpsmith.core.campaign import RoundRecord, Strike
from warpsmith.core.text import describe_error
from warpsmith.errors import MissingInput, Misuse


def strike_round(campaign: Campaign, number: int, reason: str) -> StoredRound:
    """Strike an accepted round for good; the accepted version before it is the best version again.

    If the open round builds on a struck best version, its plan is dropped. The caller holds `hold_campaign`.

    Raises:
        MissingInput: there is no such round.
        Misuse: it is not in the lineage, the reason is too short or invents a figure, or the open round has a
            verdict against it.
    """
    state = read_state(campaign)
    stored = next((stored for stored in state.rounds if stored.record.round == number), None)
    if stored is None:
        raise MissingInput(f"{campaign.name} has no closed round {number}; `warpsmith status` lists them.")
    if not stored.record.verdict.stands:
        status = "was struck before" if stored.record.struck else "was not accepted"
        raise Misuse(f"Round {number}, {stored.record.solution}, {status}; there is nothing to strike.")
    try:
        strike = Strike(record_sha256=stored.sha256, reason=reason.strip(), at=this_minute())
    except ValidationError as error:
        raise Misuse(f"The strike does not validate: {describe_error(error)}.") from error
    recorded = texts.quantities_of(campaign.manifest, *state.records)
    texts.refuse_faults(campaign.project, {"reason for the strike": strike.reason}, recorded)
    if stored.record is state.best:
        _drop_plan(state)
    records.write_strike(stored, strike)
    if campaign.manifest.git == "branch":
        lineage.sync_branch(campaign)
    return campaign.ledger.read(number)


def rounds_built_on(campaign: Campaign, struck: RoundRecord) -> list[RoundRecord]:
    """List the rounds in the lineage whose version started from the struck one and may share its fault."""
    return [record for record in campaign.records() if record.parent == struck.solution and record.verdict.stands]


def _drop_plan(state: CampaignState) -> None:
    if state.open.verdict:
        raise Misuse(
            f"Round {state.number} was judged against {state.best_name} already;"
            " first close it with `warpsmith next`."
        )
    # In reverse order, and before the strike: after a crash the open round is sound and only has fewer parts.
    for name in ("plan", "contenders", "selection", "profile"):
        state.campaign.drop_part(name)
