"""Overview pages: one operator's campaigns, and all operators in one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from warpsmith.core import trust
from warpsmith.core.base import Model
from warpsmith.core.campaign import Manifest, RoundRecord
from warpsmith.core.evaluation import COMPILED, Aggregate, Evaluation, Status
from warpsmith.core.race import Mode, RaceRecord
from warpsmith.reporting import facts
from warpsmith.reporting.format import Md, link
from warpsmith.reporting.templating import fill_template

_MODES: tuple[Mode, ...] = ("eager", "graph")
"""Modes of timing; if a side has both, the later one counts."""


class LightRounds(Model):
    """Closed rounds of a campaign as overviews need them, in the index of rounds."""

    records: tuple[RoundRecord, ...]
    """Light records in order."""
    inputs: str
    """Hash over the records and strikes that they were made from."""


@dataclass(frozen=True)
class CampaignRow:
    """One campaign in an overview."""

    manifest: Manifest
    """Manifest of the campaign."""
    rounds: Sequence[RoundRecord]
    """Records of its rounds; empty if they are corrupt."""
    final: Evaluation | None = None
    """Final race of its best version."""
    race: RaceRecord | None = None
    """Last race against all peers: of its best version if there is one, else of another version."""
    unreadable: bool = False
    """True if a record is corrupt."""
    inputs: str = ""
    """Hash over all that the row follows from; empty if nobody asked for it."""

    def lightened(self) -> CampaignRow:
        """Return the same row with light records, so that the rows of thousands of rounds fit into memory."""
        return replace(self, rounds=[light_record(record, self.best) for record in self.rounds])

    @property
    def link(self) -> Md:
        """Link to its report, relative to its operator's folder."""
        return link(self.manifest.campaign, f"{self.manifest.campaign}/report.md", ".")

    @property
    def operator_link(self) -> Md:
        """Link to its operator's page, relative to the devlog."""
        op = self.manifest.target_op
        return link(op, f"{op}/{op}.md", ".")

    @property
    def best(self) -> RoundRecord | None:
        """Round of its best version."""
        return facts.best_round(self.rounds)

    @property
    def best_text(self) -> str:
        """Name of its best version; in a port campaign the last one that passed, marked as UNTIMED."""
        if self.best is None:
            return "none yet"
        return f"{self.best.solution}, UNTIMED" if self.manifest.port else self.best.solution

    @property
    def share(self) -> float | None:
        """Share of the ceiling that the best version reaches."""
        return facts.mean_ceiling_share(self._evaluation) if self._evaluation else None

    @property
    def nearest(self) -> float | None:
        """Highest share of the ceiling over workloads; None if there is only one workload."""
        shares = [timing.ceiling_share for timing in self._evaluation.timed.values()] if self._evaluation else []
        return max(shares) if len(shares) > 1 else None

    @property
    def date(self) -> str | None:
        """Date on which its last round closed."""
        return self.rounds[-1].closed[:10] if self.rounds else None

    @property
    def device(self) -> str | None:
        """Device on which its best version was measured; None in a port campaign, which has none."""
        if self.manifest.port:
            return None
        return self._evaluation.provenance.machine.device if self._evaluation else None

    @property
    def trust(self) -> str | None:
        """Level of trust in its best version's figures, with the protections that were not in force."""
        return trust.short_text(self._evaluation.trust) if self._evaluation else None

    def aggregate(self, side: str) -> Aggregate | None:
        """Return the best version's speedup over another side."""
        return self._means.get(side)

    @property
    def compiled(self) -> Aggregate | None:
        """Speedup of the best version over torch.compile, or of the version that raced with it."""
        return self._peer_means.get(COMPILED)

    @property
    def best_peer(self) -> Aggregate | None:
        """Smallest speedup of the best version over a peer, torch.compile included."""
        return facts.best_peer(self._peer_means.values())

    @property
    def other_peer(self) -> Aggregate | None:
        """Smallest speedup of the best version over a peer other than torch.compile."""
        return facts.best_peer(mean for side, mean in self._peer_means.items() if side != COMPILED)

    def notes(self, peer: Aggregate | None) -> list[str]:
        """Return notes on a peer's figure: that it rounds differently, or that another version raced."""
        if self.race is None or peer is None:
            return []
        notes = ["near"] if self.race.near(peer.against) else []
        return notes + ([] if peer.against in self._means else [self.race.solution])

    @property
    def _peer_means(self) -> dict[str, Aggregate]:
        """Means by side: the best version's, and those of a raced
        version for sides that the best one was not raced with."""
        return self._race_means | self._means

    @property
    def _means(self) -> dict[str, Aggregate]:
        """Means by side: those of the evaluation and of the last race, if it was of the best version.

        Of a side that both have, the race's counts if it raced every workload that the evaluation timed.
        """
        evaluation, raced = self._evaluation, self.race
        if evaluation is None or self.best is None:
            return {}
        means = {mean.against: mean for mean in evaluation.aggregates}
        if raced is None or raced.provenance.solution_sha256 != self.best.snapshot_sha256:
            return means
        is_whole = evaluation.timed.keys() <= {result.workload for result in raced.results}
        return means | self._race_means if is_whole else self._race_means | means

    @property
    def _race_means(self) -> dict[str, Aggregate]:
        """Means by side of the last race, from CUDA graphs if there are any."""
        means = self.race.aggregates if self.race else {}
        return {mean.against: mean for mode in _MODES for mean in means.get(mode, ())}

    @property
    def _evaluation(self) -> Evaluation | None:
        return facts.reported_evaluation(self.rounds, self.final)


def light_record(record: RoundRecord, best: RoundRecord | None) -> RoundRecord:
    """Return a record without what no overview shows of it: its profiles, and its figures unless it is the best.

    Failures stay, and of a version that stands one result, without which its record would not be valid.
    """
    bare = record.model_copy(update={"profile": None, "profile_after": None, "draw": None, "spent": ()})
    if record is best:
        return bare
    evaluation = record.evaluation
    results = [result for result in evaluation.results if result.status is not Status.PASSED]
    if evaluation.decision.verdict.accepted:
        results = [result for result in evaluation.results if result.timing is not None][:1]
    elif evaluation.decision.verdict.stands:
        results = list(evaluation.results[:1])
    empty = dict.fromkeys(("steps", "trust", "resources", "representative", "aggregates", "unseen"), ())
    others: dict[str, object] = {"results": tuple(results), "absent": {}, "energy": None, "noise": None}
    if best and evaluation.provenance.machine == best.evaluation.provenance.machine:  # one copy of it is enough
        machine = {"machine": best.evaluation.provenance.machine}
        others["provenance"] = evaluation.provenance.model_copy(update=machine)
    return bare.model_copy(update={"evaluation": evaluation.model_copy(update=empty | others)})


def operator_page(op: str, rows: Iterable[CampaignRow]) -> str:
    """Render `<op>.md`: the campaigns of one operator, by name."""
    campaigns = [row for row in rows if row.manifest.target_op == op]
    return fill_template("operator", op=op, rows=sorted(campaigns, key=lambda row: row.manifest.campaign))


def devlog_page(rows: Iterable[CampaignRow], best_versions: Mapping[tuple[str, str], str] | None = None) -> str:
    """Render `README.md` of the devlog: one row for each operator and target, as `leading_rows` chooses them."""
    return fill_template("devlog", rows=leading_rows(rows, best_versions))


def leading_rows(
    rows: Iterable[CampaignRow], best_versions: Mapping[tuple[str, str], str] | None = None
) -> list[CampaignRow]:
    """Return the campaign of the best version of each operator and target, sorted by them.

    Args:
        rows: all campaigns.
        best_versions: hash of the best version by operator and target. Where it is unknown, the campaign nearest
        to the roofline is chosen.
    """
    leading: dict[tuple[str, str], CampaignRow] = {}
    timed = (row for row in rows if not row.manifest.port)  # nothing is known of the speed of the others
    for row in sorted(timed, key=lambda row: row.manifest.campaign):
        key = (row.manifest.target_op, row.manifest.target)
        best = (best_versions or {}).get(key)
        if key not in leading or _rank(row, best) > _rank(leading[key], best):
            leading[key] = row
    return [leading[key] for key in sorted(leading)]


def _rank(row: CampaignRow, best_version: str | None) -> tuple[bool, float]:
    return row.best is not None and row.best.snapshot_sha256 == best_version, row.share or 0.0
