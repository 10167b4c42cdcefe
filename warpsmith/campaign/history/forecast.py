"""Forecast of the gain of another round: a share of the gap to the limit, mostly the last round's.

The last round says most. A direction that has just shown a gain has more to give, even if the version was rolled
back; a round that came out slower seldom precedes a gain. `warpsmith stop-replay` measures how well this works.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, expm1
from statistics import median
from typing import Final

from warpsmith.campaign.history import past_rounds
from warpsmith.campaign.history.past_rounds import PastRound, PastTotals
from warpsmith.campaign.history.store import Campaign
from warpsmith.core.base import Model
from warpsmith.core.campaign import GainUnit, Manifest, Objective, RoundRecord
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.spend import format_usd
from warpsmith.errors import Misuse

MEAN_WEIGHT: Final = 0.1
"""Weight of the mean over all rounds where the last round weighs 1. Chosen on the records that ship."""

START_SHARE, START_ROUNDS = 0.1, 10
"""Share of the gap that a round closes before any is known, and the number of rounds that it counts as. Chosen."""

MINIMUM_GAIN: Final = 0.02
"""Expected gain of a round below which it does not pay, unless the user says otherwise. Chosen."""


_UNITS: Final[dict[GainUnit, str]] = {"round": "round", "minute": "minute", "usd": "dollar"}


class Forecast(Model):
    """Expected gain of another round, with what it follows from."""

    gap: float
    """Logarithm of the best version's time over its limit, a mean over the workloads of a round."""
    last_share: float | None
    """Share of the gap that the last round of this line would close, accepted or not; null before the first."""
    mean_share: float
    """Mean share over all rounds that are known."""
    rounds: int
    """Number of rounds that are known."""
    accepted: int
    """Number of those whose version was accepted."""
    minutes: float | None
    """Median minutes of a round of this campaign; null before its first."""
    usd: float | None
    """Median US dollars of a round of this campaign; null if none were recorded."""

    @property
    def gain(self) -> float:
        """Expected gain: 0.02 is 2 % faster."""
        if self.last_share is None:
            return expm1(self.gap * self.mean_share)
        return expm1(self.gap * (self.last_share + MEAN_WEIGHT * self.mean_share) / (1 + MEAN_WEIGHT))

    def gain_per(self, unit: GainUnit) -> float | None:
        """Return the expected gain per round, minute or dollar; None if that cost is not known."""
        cost = {"round": 1.0, "minute": self.minutes, "usd": self.usd}[unit]
        return self.gain / cost if cost else None

    def stop_reason(self, manifest: Manifest) -> str | None:
        """Describe why another round does not pay; None if it does, or if the campaign sets no minimum."""
        gain = self.gain_per(manifest.minimum_gain_per)
        if manifest.minimum_gain is None or gain is None or gain >= manifest.minimum_gain:
            return None
        minimum = f"{manifest.minimum_gain:.1%} a {_UNITS[manifest.minimum_gain_per]}"
        return f"another round does not pay, the minimum is {minimum}: {self.text}"

    @property
    def text(self) -> str:
        """Forecast in words."""
        last = "" if self.last_share is None else f"the last round closed {self.last_share:.0%} of the gap, "
        shares = f"{last}the mean round {self.mean_share:.0%}; {self.accepted} of {self.rounds} were accepted"
        costs: dict[GainUnit, str] = {
            "minute": f"{self.minutes or 0:.0f} min",
            "usd": format_usd(self.usd or 0),
        }
        returns = [
            f"{gain:.2%} a {_UNITS[unit]} at {cost} a round"
            for unit, cost in costs.items()
            if (gain := self.gain_per(unit)) is not None
        ]
        gap = f"the best version is at {exp(-self.gap):.1%} of its limit"
        return "; ".join([f"expected gain {self.gain:.1%} ({gap}; {shares})", *returns])


def default_minimum_gain(minimum: float | None, max_iterations: int | None, unit: GainUnit) -> float | None:
    """Return the minimum gain of a new campaign whose rounds are paid for.

    Args:
        minimum: the user's own; it overrides.
        max_iterations: the user's number of rounds; it overrides the default.
        unit: cost that the minimum is asked for.

    Raises:
        Misuse: a minute or a dollar has no default.
    """
    if minimum is None and unit != "round":
        raise Misuse(f"A minimum gain a {_UNITS[unit]} has no default; add --minimum-gain, such as 0.002.")
    return MINIMUM_GAIN if minimum is None and max_iterations is None else minimum


def forecast_gain(
    gap: float, last_share: float | None, past: PastTotals, own: Sequence[PastRound] = ()
) -> Forecast:
    """Forecast the gain of another round.

    Args:
        gap: distance of the best version from the limit.
        last_share: share of the gap that the last round measured; None before the first of its line.
        past: totals of all rounds that are closed, of every campaign.
        own: the campaign's rounds among them, for the cost of a round.
    """
    minutes = [each.minutes for each in own]
    dollars = [each.usd for each in own if each.usd is not None]
    return Forecast(
        gap=gap,
        last_share=last_share,
        mean_share=(START_SHARE * START_ROUNDS + past.shares) / (START_ROUNDS + past.rounds),
        rounds=past.rounds,
        accepted=past.accepted,
        minutes=max(1.0, median(minutes)) if minutes else None,  # records have it to the minute
        usd=median(dollars) if dollars else None,
    )


def last_of_line(line: str, objective: Objective, rounds: Sequence[PastRound]) -> PastRound | None:
    """Return the round of a line that was closed last, None if there is none.

    A campaign for time does not learn from rounds for energy.
    """
    useful = [past for past in rounds if past.line == line and past.objective in ("time", objective)]
    return max(useful, key=lambda past: (past.closed, past.round), default=None)


def forecast_round(
    campaign: Campaign, records: Sequence[RoundRecord], verdict: Evaluation | None = None
) -> Forecast | None:
    """Forecast the round after the closed ones; None while no version was accepted.

    Args:
        campaign: the campaign.
        records: its closed rounds.
        verdict: evaluation of the open round, which then counts as the last one.
    """
    manifest, accepted = campaign.manifest, [r.evaluation for r in records if r.verdict.accepted]
    judged = [record.evaluation for record in records] + ([verdict] if verdict else [])
    names = past_rounds.round_workloads(manifest, judged)
    before = accepted[-1] if accepted else None
    best = verdict if verdict and verdict.decision.verdict.accepted else before
    if best is None:
        return None
    past = past_rounds.read_past_totals(campaign.project)
    own = past_rounds.list_past_rounds(manifest, records)
    line = past_rounds.version_line(manifest, best.language)
    last = own[-1] if own else last_of_line(line, manifest.objective, past.last)
    last_share = last.share if last else None
    if verdict and before:
        measured = past_rounds.measured_gain(verdict)
        last_share = past_rounds.gap_share(measured, past_rounds.limit_gap(before, names))
    return forecast_gain(past_rounds.limit_gap(best, names), last_share, past, own)
