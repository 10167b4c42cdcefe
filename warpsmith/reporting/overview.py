"""Overviews: an operator over its campaigns, and every operator in one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from warpsmith.core.campaign import Manifest, RoundRecord
from warpsmith.core.evaluation import COMPILED, Aggregate, Evaluation
from warpsmith.core.race import Mode, RaceRecord
from warpsmith.reporting import facts
from warpsmith.reporting.format import Md, link
from warpsmith.reporting.templating import fill

_MODES: tuple[Mode, ...] = ("eager", "graph")
"""The later one counts where a side has both."""


@dataclass(frozen=True)
class Row:
    """One campaign."""

    manifest: Manifest
    """What it is about."""
    rounds: Sequence[RoundRecord]
    """Its records; empty where they do not read."""
    final: Evaluation | None = None
    """Its best version's race at the end."""
    race: RaceRecord | None = None
    """The last race beside every peer: of its best version where there is one, else of another."""
    unreadable: bool = False
    """Whether a record is corrupt."""

    @property
    def link(self) -> Md:
        """To its report, from its operator's folder."""
        return link(self.manifest.campaign, f"{self.manifest.campaign}/report.md", ".")

    @property
    def operator_link(self) -> Md:
        """To its operator's page, from the folder of all operators."""
        op = self.manifest.target_op
        return link(op, f"{op}/{op}.md", ".")

    @property
    def best(self) -> RoundRecord | None:
        """The round of its best version."""
        return facts.best(self.rounds)

    @property
    def share(self) -> float | None:
        """The best version's share of the ceiling."""
        return facts.ceiling_share(self._speaks) if self._speaks else None

    @property
    def nearest(self) -> float | None:
        """Its share at the workload that comes nearest; None where there is one alone."""
        shares = [timing.ceiling_share for timing in self._speaks.timed.values()] if self._speaks else []
        return max(shares) if len(shares) > 1 else None

    @property
    def date(self) -> str | None:
        """When its last round closed."""
        return self.rounds[-1].closed[:10] if self.rounds else None

    @property
    def device(self) -> str | None:
        """What its best version was measured on."""
        return self._speaks.provenance.machine.device if self._speaks else None

    def aggregate(self, side: str) -> Aggregate | None:
        """The best version against another side."""
        return self._against.get(side)

    @property
    def compiled(self) -> Aggregate | None:
        """The best version against torch.compile, or the version that raced with it."""
        return self._beside.get(COMPILED)

    @property
    def best_peer(self) -> Aggregate | None:
        """The best version against the peer that comes nearest to it, torch.compile among them."""
        return facts.best_peer(self._beside.values())

    def notes(self, peer: Aggregate | None) -> list[str]:
        """What to know of a peer's figure: that it rounds otherwise, that another version raced."""
        if self.race is None or peer is None:
            return []
        near = ["near"] if self.race.near(peer.against) else []
        return near + ([] if peer.against in self._against else [self.race.solution])

    @property
    def _beside(self) -> dict[str, Aggregate]:
        """By side: the best version's means, and the version's that raced with what the best one did not."""
        return self._raced | self._against

    @property
    def _against(self) -> dict[str, Aggregate]:
        """By side: the last race's means where it was the best version's, else those of the evaluation."""
        found = {mean.against: mean for mean in self._speaks.aggregates} if self._speaks else {}
        if self.race and self.best and self.race.provenance.solution_sha256 == self.best.snapshot_sha256:
            found |= self._raced
        return found

    @property
    def _raced(self) -> dict[str, Aggregate]:
        """By side: the last race's means, out of CUDA graphs where there are any."""
        means = self.race.aggregates if self.race else {}
        return {mean.against: mean for mode in _MODES for mean in means.get(mode, ())}

    @property
    def _speaks(self) -> Evaluation | None:
        return facts.speaks(self.rounds, self.final)


def operator_page(op: str, rows: Iterable[Row]) -> str:
    """`<op>.md`: the campaigns of one operator, by name."""
    mine = [row for row in rows if row.manifest.target_op == op]
    return fill("operator", op=op, rows=sorted(mine, key=lambda row: row.manifest.campaign))


def devlog_page(rows: Iterable[Row], standing: Mapping[tuple[str, str], str] | None = None) -> str:
    """`README.md` of the devlog: one row an operator and target, the campaign of its best version.

    Args:
        rows: all campaigns.
        standing: by operator and target the hash of the version that stands as the best. Where it is unknown the
            campaign nearest to the roofline is taken.
    """
    leading: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda row: row.manifest.campaign):
        key = (row.manifest.target_op, row.manifest.target)
        best = (standing or {}).get(key)
        if key not in leading or _rank(row, best) > _rank(leading[key], best):
            leading[key] = row
    return fill("devlog", rows=[leading[key] for key in sorted(leading)])


def _rank(row: Row, standing: str | None) -> tuple[bool, float]:
    return row.best is not None and row.best.snapshot_sha256 == standing, row.share or 0.0
