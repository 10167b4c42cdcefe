"""Past rounds as the forecast of the next one needs them: the gap before each, and the gain that it measured."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from datetime import datetime
from functools import partial
from math import fsum, log
from pathlib import Path
from typing import TypeVar

from pydantic import Field

from warpsmith import project as projects
from warpsmith.campaign.history import index, manifests, stopping, store
from warpsmith.core.base import Minute, Model, Slug
from warpsmith.core.campaign import Manifest, Objective, RoundRecord
from warpsmith.core.evaluation import BEST, Evaluation
from warpsmith.core.spend import Spent
from warpsmith.project import Project

T = TypeVar("T", bound=Model)


class PastRound(Model):
    """One closed round that was judged against a best version. Gains and gaps are natural logarithms."""

    campaign: Slug
    """Name of its campaign."""
    round: int
    """Number of the round."""
    line: str
    """Operator, target and language of its version: `softmax/h200/triton`."""
    objective: Objective
    """Objective of its campaign."""
    opened: Minute
    """Time when it was opened, in UTC."""
    closed: Minute
    """Time when it was closed, in UTC."""
    gap: float = Field(ge=0)
    """Distance of the best version before it from the limit, as `limit_gap` returns it."""
    measured: float = Field(ge=0)
    """Gain that was measured, whatever the verdict; 0 for a loss, and if nothing was timed."""
    accepted: bool
    """True if its version joined the lineage and was not struck."""
    usd: float | None
    """US dollars of its agents; null if none were recorded."""

    @property
    def share(self) -> float:
        """Share of the gap that its version would close: 1 is all of it."""
        return gap_share(self.measured, self.gap)

    @property
    def gained(self) -> float:
        """Gain that joined the lineage."""
        return self.measured if self.accepted else 0.0

    @property
    def minutes(self) -> float:
        """Wall-clock minutes from opening to closing; records have both to the minute."""
        opened, closed = (datetime.fromisoformat(time) for time in (self.opened, self.closed))
        return max(0.0, (closed - opened).total_seconds() / 60)


class CampaignPast(Model):
    """Past rounds of one campaign, as the index of rounds has them."""

    rounds: tuple[PastRound, ...]
    """The rounds that were judged against a best version, in order."""


class PastTotals(Model):
    """Totals that a forecast takes from past rounds, of one campaign or of many."""

    rounds: int
    """Number of the rounds."""
    shares: float
    """Sum of their shares of the gap."""
    accepted: int
    """Number of those whose version joined the lineage and was not struck."""
    last: tuple[PastRound, ...]
    """The last round of each campaign and line."""


def total_rounds(rounds: Sequence[PastRound]) -> PastTotals:
    """Return the totals of rounds."""
    last = {
        (past.campaign, past.line): past for past in sorted(rounds, key=lambda past: (past.closed, past.round))
    }
    return PastTotals(
        rounds=len(rounds),
        shares=fsum(past.share for past in rounds),
        accepted=sum(past.accepted for past in rounds),
        last=tuple(last.values()),
    )


def gap_share(measured: float, gap: float) -> float:
    """Return the share of a gap that a measured gain closes: 0 to 1; 0 of no gap."""
    return min(1.0, measured / gap) if gap else 0.0


def version_line(manifest: Manifest, language: str) -> str:
    """Return the line of a version: operator, target and language."""
    return f"{manifest.target_op}/{manifest.target}/{language}"


def limit_gap(evaluation: Evaluation, names: Container[str]) -> float:
    """Return the mean over workloads of log(time / limit); a workload at or below its limit counts as 0.

    Args:
        evaluation: evaluation in which one of them was timed.
        names: workloads that rounds are judged at; those that were not timed are left out.
    """
    timings = evaluation.timed
    shares = [timings[name].ceiling_share for name in timings if name in names]
    return fsum(max(0.0, -log(share)) for share in shares) / len(shares)


def measured_gain(evaluation: Evaluation) -> float:
    """Return the logarithm of the gain over the best version, 0 for a loss.

    A version that was refused after it was timed has no mean; its timed workloads stand in for it.
    """
    if evaluation.gain:
        return max(0.0, log(evaluation.gain.speedup))
    logs = [log(comparison.speedup) for t in evaluation.timed.values() if (comparison := t.against(BEST))]
    return max(0.0, fsum(logs) / len(logs)) if logs else 0.0


def list_past_rounds(manifest: Manifest, records: Sequence[RoundRecord]) -> list[PastRound]:
    """List the rounds of a campaign that were judged against a best version, in order."""
    names = round_workloads(manifest, [record.evaluation for record in records])
    best, rounds = None, []
    for record in records:
        accepted = record.verdict.accepted
        if best is not None:
            gain = measured_gain(record.evaluation)
            rounds.append(
                PastRound(
                    campaign=record.campaign,
                    round=record.round,
                    line=version_line(manifest, record.evaluation.language),
                    objective=manifest.objective,
                    opened=record.opened,
                    closed=record.closed,
                    gap=limit_gap(best, names),
                    measured=gain,
                    accepted=accepted,
                    usd=Spent.of(record.spent).usd if record.spent else None,
                )
            )
        best = record.evaluation if accepted else best
    return rounds


def round_workloads(manifest: Manifest, evaluations: Iterable[Evaluation]) -> frozenset[str]:
    """Return the workloads that the rounds of a campaign are judged at; the baseline is timed at more.

    Old baselines do not name them; then a later round shows them, or they are all that were timed.
    """
    timed = [evaluation for evaluation in evaluations if evaluation.timed]
    if not timed:
        return frozenset()
    first = stopping.round_timings(manifest, timed[0])
    return frozenset(first).intersection(*(evaluation.timed for evaluation in timed))


def read_past_rounds(project: Project) -> list[PastRound]:
    """Read the past rounds of all campaigns of the project and of those that ship with Warpsmith.

    A campaign with a corrupt record is left out; its own commands report it.
    """
    return [
        past for campaign in _derive_pasts(project, "past", CampaignPast, _read_past) for past in campaign.rounds
    ]


def read_past_totals(project: Project) -> PastTotals:
    """Return the totals of the rounds of `read_past_rounds`, which take less time than the rounds."""
    totals = _derive_pasts(project, "past totals", PastTotals, lambda *of: total_rounds(_read_past(*of).rounds))
    return PastTotals(
        rounds=sum(each.rounds for each in totals),
        shares=fsum(each.shares for each in totals),
        accepted=sum(each.accepted for each in totals),
        last=tuple(past for each in totals for past in each.last),
    )


def _derive_pasts(project: Project, kind: str, model: type[T], derive: Callable[[Project, Path], T]) -> list[T]:
    """Return what `derive` gives for each campaign of the project and of those that ship, from the index."""
    shipped, derived = projects.shipped_project(), []
    for source in (project,) if project.devlog == shipped.devlog else (project, shipped):
        folders = manifests.campaign_folders(source)
        derived += index.derive_from_rounds(source.root, folders, kind, model, partial(derive, source))
    return [each for each in derived if each is not None]


def _read_past(project: Project, folder: Path) -> CampaignPast:
    campaign = store.read_campaign(project, folder)
    return CampaignPast(rounds=tuple(list_past_rounds(campaign.manifest, campaign.records())))
