"""Overviews: an operator over its campaigns, and every operator in one table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from warpsmith.core.campaign import Manifest, RoundRecord
from warpsmith.core.evaluation import Aggregate, Evaluation
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
    """The last race of its best version beside every peer; None where there was none."""
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
    def best_peer(self) -> Aggregate | None:
        """The best version against the peer that comes nearest to it, torch.compile among them."""
        return facts.best_peer(self._against.values())

    @property
    def near(self) -> bool:
        """Whether the best peer was raced though it rounds otherwise."""
        return bool(self.race and self.best_peer and self.race.near(self.best_peer.against))

    @property
    def _against(self) -> dict[str, Aggregate]:
        """By side: the last race's means, out of CUDA graphs where there are any, else those of the evaluation."""
        found = {mean.against: mean for mean in self._speaks.aggregates} if self._speaks else {}
        if self.race is not None:
            for mode in _MODES:
                found |= {mean.against: mean for mean in self.race.aggregates.get(mode, ())}
        return found

    @property
    def _speaks(self) -> Evaluation | None:
        return facts.speaks(self.rounds, self.final)


def operator_page(op: str, rows: Iterable[Row]) -> str:
    """`<op>.md`: the campaigns of one operator, by name."""
    mine = [row for row in rows if row.manifest.target_op == op]
    return fill("operator", op=op, rows=sorted(mine, key=lambda row: row.manifest.campaign))


def devlog_page(rows: Iterable[Row]) -> str:
    """`README.md` of the devlog: one row an operator and target, the best campaign of each."""
    leading: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda row: row.manifest.campaign):
        key = (row.manifest.target_op, row.manifest.target)
        if key not in leading or (row.share or 0) > (leading[key].share or 0):
            leading[key] = row
    return fill("devlog", rows=[leading[key] for key in sorted(leading)])
