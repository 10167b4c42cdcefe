"""Strike: an accepted version that a later review found wanting leaves the lineage; its round stays as it is."""

from __future__ import annotations

from pydantic import ValidationError

from warpsmith.campaign.history import lineage, records
from warpsmith.campaign.history.records import Kept
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.rounds import state
from warpsmith.campaign.rounds.state import State
from warpsmith.core.base import this_minute
from warpsmith.core.campaign import RoundRecord, Strike
from warpsmith.core.problem import problem
from warpsmith.errors import MissingInput, Misuse


def strike(campaign: Campaign, number: int, reason: str) -> Kept:
    """Strike an accepted round for good; the accepted version before it is the best one again.

    What the open round has planned on top of a struck best version is dropped. The caller holds `lock.hold`.

    Raises:
        MissingInput: there is no such round.
        Misuse: it is not in the lineage, the reason says nothing, or a verdict against it waits in the open round.
    """
    now = state.read(campaign)
    kept = next((kept for kept in now.rounds if kept.record.round == number), None)
    if kept is None:
        raise MissingInput(f"{campaign.name} has no closed round {number}; `warpsmith status` lists them.")
    if not kept.record.verdict.accepted:
        what = "was struck already" if kept.record.struck else "was not accepted"
        raise Misuse(f"Round {number}, {kept.record.solution}, {what}; there is nothing to strike.")
    try:
        made = Strike(record_sha256=kept.sha256, reason=reason.strip(), at=this_minute())
    except ValidationError as error:
        raise Misuse(f"The strike does not validate: {problem(error)}.") from error
    if kept.record is now.best:
        _drop_plan(now)
    records.keep_strike(kept, made)
    if campaign.manifest.git == "branch":
        lineage.sync(campaign)
    return records.read(campaign.rounds, number, campaign.name)


def built_on(campaign: Campaign, struck: RoundRecord) -> list[RoundRecord]:
    """The rounds still in the lineage whose version began with the struck one: they may hold the same fault."""
    return [
        record for record in campaign.records() if record.parent == struck.solution and record.verdict.accepted
    ]


def _drop_plan(now: State) -> None:
    opened = now.open
    if opened.verdict:
        raise Misuse(
            f"Round {now.number} was judged against {now.best_name} already; close it first, by `warpsmith next`."
        )
    # The last first, and all before the strike: a crash in between leaves an open round that is only less far.
    for name in ("plan", "selection", "profile"):
        (now.campaign.open / f"{name}.json").unlink(missing_ok=True)
