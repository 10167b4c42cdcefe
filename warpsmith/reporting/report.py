"""Pages of a campaign: the report, a round's summary and the performance trend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from warpsmith.campaign.calibration import calibrate
from warpsmith.campaign.firewall import EarlierRead
from warpsmith.campaign.history import stopping
from warpsmith.core.base import Model
from warpsmith.core.campaign import Closure, Manifest, RoundRecord
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.evidence import Rerun
from warpsmith.ledger.store import RECORD
from warpsmith.reporting import facts
from warpsmith.reporting.format import Md, code, link
from warpsmith.reporting.templating import fill_template


class ReportContents(Model):
    """Data that a report is rendered from."""

    manifest: Manifest
    """Manifest of the campaign."""
    records: tuple[RoundRecord, ...]
    """Closed rounds in order."""
    final: Evaluation | None
    """Final race of the best version; null if it was not run."""


@dataclass(frozen=True)
class ReportLinks:
    """Links of a campaign's report; paths are relative to the project."""

    folder: str
    """Folder of the campaign, with slashes."""
    entries: Mapping[str, str] = field(default_factory=dict)
    """Page by id of knowledge entry, for entries in the project."""

    def link(self, path: str) -> Md:
        """Return a link to a file of the project, labeled with its path."""
        return link(path, path, self.folder)

    def round(self, number: int) -> Md:
        """Return a link to a round's record, labeled with its number."""
        return link(f"{number:03d}", f"{self.folder}/rounds/{number:03d}/{RECORD}", self.folder)

    def file(self, number: int, name: str) -> Md:
        """Return a link to a file of a round, labeled with its name."""
        return link(name, f"{self.folder}/rounds/{number:03d}/{name}", self.folder)

    def entry(self, entry: str) -> Md:
        """Return a link to a knowledge entry, or its bare id if its page ships with Warpsmith."""
        path = self.entries.get(entry)
        return link(entry, path, self.folder) if path else code(entry)


def report_page(
    manifest: Manifest,
    rounds: Sequence[RoundRecord],
    links: ReportLinks,
    final: Evaluation | None = None,
    reruns: Mapping[str, Rerun] = MappingProxyType({}),
    closure: Closure | None = None,
    reads: Sequence[EarlierRead] = (),
) -> str:
    """Render `report.md`.

    Args:
        manifest: manifest of the campaign.
        rounds: closed rounds in order.
        links: links of the page.
        final: final race of the best version.
        reruns: latest rerun by round (`007`) or of the final race (`final`).
        closure: end of the campaign before a stop condition.
        reads: reads of earlier work that the campaign hides.
    """
    best, judged = facts.best_round(rounds), facts.all_evaluations(rounds, final)
    return fill_template(
        "report",
        manifest=manifest,
        rounds=rounds,
        links=links,
        best=best,
        final=final,
        reruns=reruns,
        evaluation=facts.reported_evaluation(rounds, final),
        judged=judged,
        first=facts.baseline_round(rounds),
        reads=reads,
        headline_sides=facts.headline_sides(manifest),
        target=stopping.target_share(manifest),
        stop=closure.text if closure else stopping.recorded_stop(manifest, rounds),
        calibration=calibrate(rounds),
        seeds=len({evaluation.provenance.seed for evaluation in judged}),
        missing=facts.not_measured(manifest, rounds, final),
    )


def round_page(record: RoundRecord, rerun: Rerun | None = None) -> str:
    """Render `rounds/<NNN>/summary.md` of a round; `rerun` is the latest rerun of its judgement."""
    return fill_template("summary", record=record, rerun=rerun)


def trend_page(manifest: Manifest, rounds: Sequence[RoundRecord]) -> str:
    """Render `performance_trend.md` with one row for each round."""
    return fill_template("trend", manifest=manifest, rounds=rounds, first=facts.baseline_round(rounds))
