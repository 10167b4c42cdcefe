"""Replay of recorded campaigns under a minimum gain: the rounds that it would have saved, and the gain lost.

Each forecast sees only what was closed when its round was opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from warpsmith.campaign.history import forecast, past_rounds
from warpsmith.campaign.history.past_rounds import PastRound
from warpsmith.core.base import Model

MINIMA: Final = (0.005, 0.01, 0.015, 0.02, 0.025, 0.03)
"""Minimum gains that are compared."""

MOST_LOST: Final = 0.02
"""Share of the gain that a suitable minimum may lose."""


class CampaignReplay(Model):
    """One recorded campaign under a minimum gain."""

    campaign: str
    """Name of the campaign."""
    rounds: int
    """Number of its rounds after the first accepted version."""
    stop: int | None
    """Number of the round before which it stops; null if it does not."""
    expected: float | None
    """Expected gain of that round; null if it does not stop."""
    saved: int
    """Number of rounds that are saved."""
    gained: float
    """Gain of its accepted rounds, as a logarithm."""
    lost: float
    """Gain of the accepted rounds among those saved, as a logarithm."""


class StopReplay(Model):
    """All recorded campaigns under a minimum gain."""

    minimum_gain: float | None
    """Expected gain below which a campaign stops; null if each has the one that suits the others."""
    campaigns: tuple[CampaignReplay, ...]
    """Campaigns with a round after their first accepted version."""

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return sum(replay.rounds for replay in self.campaigns)

    @property
    def saved(self) -> int:
        """Number of rounds that are saved."""
        return sum(replay.saved for replay in self.campaigns)

    @property
    def saved_share(self) -> float:
        """Share of the rounds that is saved; 0 without rounds."""
        return self.saved / self.rounds if self.rounds else 0.0

    @property
    def lost_share(self) -> float:
        """Share of the logarithmic gain that is lost; 0 without a gain."""
        gained = sum(replay.gained for replay in self.campaigns)
        return sum(replay.lost for replay in self.campaigns) / gained if gained else 0.0

    @property
    def text(self) -> str:
        """Result in words."""
        return (
            f"{self.saved} of {self.rounds} rounds saved ({self.saved_share:.1%}),"
            f" {self.lost_share:.1%} of the gain lost"
        )


class ReplaySummary(Model):
    """Output of `warpsmith stop-replay --json`."""

    replay: StopReplay
    """Replay under the minimum gain that was asked for."""
    minima: tuple[StopReplay, ...]
    """Replays under other minimum gains."""
    held_out: StopReplay
    """Replay of each campaign under the minimum gain that suits the others."""


def replay_campaigns(rounds: Iterable[PastRound], minimum_gain: float) -> StopReplay:
    """Replay all campaigns under one minimum gain.

    Args:
        rounds: past rounds of all campaigns, those of a campaign together and in order.
        minimum_gain: expected gain of a round below which a campaign stops before it.
    """
    rounds = list(rounds)
    campaigns = [list(group) for _, group in groupby(rounds, key=lambda past: past.campaign)]
    return StopReplay(
        minimum_gain=minimum_gain,
        campaigns=tuple(_replay_campaign(own, rounds, minimum_gain) for own in campaigns),
    )


def replay_held_out(replays: Sequence[StopReplay]) -> StopReplay:
    """Replay each campaign under the minimum gain that suits all others.

    That is the one that saves most rounds of the others and loses at most `MOST_LOST` of their gain; if each loses
    more, the one that loses least.

    Args:
        replays: the same campaigns under several minimum gains.
    """
    chosen = []
    for index in range(len(replays[0].campaigns)):
        others = [_without(replay, index) for replay in replays]
        fitness = [
            (other.lost_share <= MOST_LOST, other.saved if other.lost_share <= MOST_LOST else 0, -other.lost_share)
            for other in others
        ]
        chosen.append(replays[fitness.index(max(fitness))].campaigns[index])
    return StopReplay(minimum_gain=None, campaigns=tuple(chosen))


def _without(replay: StopReplay, index: int) -> StopReplay:
    return replay.model_copy(update={"campaigns": (*replay.campaigns[:index], *replay.campaigns[index + 1 :])})


def _replay_campaign(own: Sequence[PastRound], rounds: Sequence[PastRound], minimum_gain: float) -> CampaignReplay:
    stop, expected = None, None
    for index, due in enumerate(own):
        others = [past for past in rounds if past.campaign != due.campaign and past.closed <= due.opened]
        before = own[:index]
        last = before[-1] if before else forecast.last_of_line(due.line, due.objective, others)
        past = past_rounds.total_rounds([*others, *before])
        gain = forecast.forecast_gain(due.gap, last.share if last else None, past).gain
        if gain < minimum_gain:
            stop, expected = index, gain
            break
    saved = own[stop:] if stop is not None else []
    return CampaignReplay(
        campaign=own[0].campaign,
        rounds=len(own),
        stop=saved[0].round if saved else None,
        expected=expected,
        saved=len(saved),
        gained=sum(past.gained for past in own),
        lost=sum(past.gained for past in saved),
    )
