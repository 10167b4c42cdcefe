"""Page of a campaign over ranks: the version that stands, its final race, and round by round, from the records."""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.campaign.rounds.rank_race import RankRace
from warpsmith.campaign.rounds.rank_rounds import RankCampaign, RankRound
from warpsmith.reporting.templating import fill_template


def rank_page(
    campaign: RankCampaign, rounds: Sequence[RankRound], best: RankRound | None, race: RankRace | None
) -> str:
    """Render the page.

    Args:
        campaign: the campaign.
        rounds: its closed rounds, in order.
        best: round whose version stands, if one does.
        race: final race of that version, if it had one.
    """
    return fill_template("ranks", campaign=campaign, rounds=rounds, best=best, race=race)
