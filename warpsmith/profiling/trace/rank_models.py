"""Models of a run of many ranks: what each rank's step takes, and what its collectives cost."""

from __future__ import annotations

from pydantic import Field

from warpsmith.core.base import Model


class RankFigures(Model):
    """A step of one rank, in its own trace: medians over the steps, or averages if it marks none."""

    rank: int = Field(ge=0)
    """Number of the rank."""
    step_seconds: float = Field(gt=0)
    """Time of a step."""
    wait_seconds: float = Field(ge=0)
    """Time in collectives that waited for a later rank, while this rank computed nothing."""
    own_seconds: float = Field(ge=0)
    """Time of a step without that."""
    fastest_own_seconds: float = Field(ge=0)
    """The same of the fastest step."""
    slowest_own_seconds: float = Field(ge=0)
    """The same of the slowest step."""
    collective_seconds: float = Field(ge=0)
    """Time in which at least one collective ran."""
    exposed_seconds: float = Field(ge=0)
    """Part of it in which the rank computed nothing, waits included."""


class CollectiveFigures(Model):
    """All collectives of one kind, on average over the ranks."""

    kind: str
    """Kind: `all_reduce`."""
    calls: float = Field(ge=0)
    """Calls per step of a rank."""
    bytes: float | None = Field(ge=0)
    """Bytes per step of a rank, of the larger of input and output; null if the traces do not tell."""
    seconds: float = Field(ge=0)
    """Time per step in which at least one of them ran."""
    exposed_seconds: float = Field(ge=0)
    """Part of it in which the rank computed nothing, waits included."""
    transfer_seconds: float | None = Field(ge=0)
    """Time per step from the last rank's arrival to the end, added up over the calls; null if calls of the ranks
    could not be matched."""
    bus_rate: float | None = Field(ge=0)
    """Bytes per second that a link carries in that time, as NCCL's tests count them; null if unknown."""


class RanksReport(Model):
    """The traces of all ranks of a run on one host, put together."""

    world: int = Field(ge=2)
    """Number of ranks."""
    backend: str
    """Backend of the collectives; empty if the traces do not tell."""
    ranks: tuple[RankFigures, ...]
    """Each rank, in order."""
    collectives: tuple[CollectiveFigures, ...]
    """Kinds of collectives, the most exposed first."""
    search_seconds: float = Field(default=0.0, ge=0)
    """Time per step in which DistributedDataParallel searches for unused parameters, and in exposed collectives of
    32-bit integers, which tell the other ranks what it found; on average over the ranks."""
    copy_seconds: float = Field(default=0.0, ge=0)
    """Time per step in which it copies buckets to gradients, on average over the ranks."""
    unmatched: tuple[str, ...] = ()
    """Kinds that not every rank calls equally often: waits for other ranks are unknown there."""

    @property
    def slowest(self) -> RankFigures:
        """Return the rank with the most time of its own."""
        return max(self.ranks, key=lambda rank: rank.own_seconds)

    @property
    def fastest(self) -> RankFigures:
        """Return the rank with the least time of its own."""
        return min(self.ranks, key=lambda rank: rank.own_seconds)

    @property
    def excess(self) -> float:
        """Return the share of a step by which the slowest rank takes longer than the fastest; 0 if not in each."""
        steady = self.slowest.fastest_own_seconds > self.fastest.slowest_own_seconds
        return self.share_of(self.slowest.own_seconds - self.fastest.own_seconds) if steady else 0.0

    @property
    def step_seconds(self) -> float:
        """Return the step of the rank whose steps take longest."""
        return max(rank.step_seconds for rank in self.ranks)

    @property
    def imbalance(self) -> float:
        """Return the share of a step that ranks wait for later ones, on average over them."""
        return self.share_of(sum(rank.wait_seconds for rank in self.ranks) / len(self.ranks))

    @property
    def exposed_transfer(self) -> float:
        """Return the share of a step in exposed collectives without waits for later ranks, on average."""
        exposed = sum(max(0.0, rank.exposed_seconds - rank.wait_seconds) for rank in self.ranks)
        return self.share_of(exposed / len(self.ranks))

    @property
    def overlap(self) -> float | None:
        """Return the share of the time in collectives behind which a rank computes; None without collectives."""
        total = sum(rank.collective_seconds for rank in self.ranks)
        return 1 - sum(rank.exposed_seconds for rank in self.ranks) / total if total else None

    def exposed_share(self, *kinds: str) -> float:
        """Return the share of a step in exposed collectives of these kinds, waits included."""
        return self.share_of(sum(item.exposed_seconds for item in self.collectives if item.kind in kinds))

    def find(self, kind: str) -> CollectiveFigures | None:
        """Return the figures of a kind of collective, or None."""
        return next((item for item in self.collectives if item.kind == kind), None)

    def share_of(self, seconds: float) -> float:
        """Return seconds as a share of a step, at most 1."""
        return min(1.0, seconds / self.step_seconds)
