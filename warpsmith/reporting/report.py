"""The report of a campaign: what it reached, how it got there, what it rests on and what it does not say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from warpsmith.campaign.calibration import calibrate
from warpsmith.campaign.history import stopping
from warpsmith.core.base import Model
from warpsmith.core.campaign import Manifest, RoundRecord
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.evidence import Rerun
from warpsmith.reporting import facts
from warpsmith.reporting.format import Md, code, link
from warpsmith.reporting.templating import fill


class Contents(Model):
    """What a report is rendered from."""

    manifest: Manifest
    """What the campaign is about."""
    records: tuple[RoundRecord, ...]
    """Its closed rounds in order."""
    final: Evaluation | None
    """The best version's race at the end; null where it was not run."""


@dataclass(frozen=True)
class Place:
    """Where a campaign's report stands, and what it can link to; paths are relative to the project."""

    folder: str
    """The campaign's folder, with slashes."""
    entries: Mapping[str, str] = field(default_factory=dict)
    """Knowledge entry id to its page, for the entries whose page lies in the project."""
    plots_missing: str = ""
    """Why there are no plots; empty: they are there."""

    def link(self, path: str) -> Md:
        """A link to a file of the project, under its path."""
        return link(path, path, self.folder)

    def round(self, number: int) -> Md:
        """A link to a round's page, under its number."""
        return link(f"{number:03d}", f"{self.folder}/rounds/{number:03d}/summary.md", self.folder)

    def file(self, number: int, name: str) -> Md:
        """A link to a file of a round, under its name."""
        return link(name, f"{self.folder}/rounds/{number:03d}/{name}", self.folder)

    def entry(self, entry: str) -> Md:
        """A link to a knowledge entry; its bare id where its page ships with Warpsmith."""
        path = self.entries.get(entry)
        return link(entry, path, self.folder) if path else code(entry)


def page(
    manifest: Manifest,
    rounds: Sequence[RoundRecord],
    place: Place,
    final: Evaluation | None = None,
    again: Mapping[str, Rerun] = MappingProxyType({}),
) -> str:
    """`report.md`.

    Args:
        manifest: the campaign's.
        rounds: its closed rounds in order.
        place: where the page stands.
        final: the best version's race at the end.
        again: what judging a round (`007`) or the race (`final`) again said last.
    """
    best, judged = facts.best(rounds), facts.judgements(rounds, final)
    return fill(
        "report",
        manifest=manifest,
        rounds=rounds,
        place=place,
        best=best,
        final=final,
        again=again,
        evaluation=facts.speaks(rounds, final),
        judged=judged,
        first=facts.baseline(rounds),
        headline_sides=facts.headline_sides(manifest),
        target=stopping.target(manifest),
        stop=stopping.reason(manifest, best.evaluation if best else None, len(rounds)),
        calibration=calibrate(rounds),
        seeds=len({evaluation.provenance.seed for evaluation in judged}),
        missing=facts.not_measured(manifest, rounds, final),
    )
