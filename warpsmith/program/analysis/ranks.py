"""Ranks of an analyzed program: their traces put together, with what their processes say of themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpsmith.core.base import Model
from warpsmith.profiling.trace.rank_models import RanksReport
from warpsmith.profiling.trace.ranks import report_ranks
from warpsmith.profiling.trace.read import TraceEvents
from warpsmith.profiling.trace.text import format_bytes, format_duration
from warpsmith.program.models import ProgramFacts, ReplicaFacts

_BALANCED = 0.01
_LISTED = 4


class AnalyzedRanks(Model):
    """All ranks of a program on one host."""

    report: RanksReport
    """Their traces put together."""
    memory_peaks: tuple[int, ...]
    """Peak of each rank's memory in bytes, as `ProgramFacts.memory_peak`."""
    loader_seconds: tuple[float, ...]
    """Time of an observed step that each rank waits for its DataLoader, or loads data itself."""


def analyze_ranks(
    facts: Sequence[ProgramFacts], traces: Sequence[TraceEvents], steps: int | None = None
) -> AnalyzedRanks | None:
    """Put the ranks of a program together; None if it has only one.

    Args:
        facts: facts of each rank, with an observed step.
        traces: trace of each rank.
        steps: number of steps of traces that mark none.
    """
    if len(traces) < 2:
        return None
    return AnalyzedRanks(
        report=report_ranks(traces, steps),
        memory_peaks=tuple(item.memory_peak for item in facts),
        loader_seconds=tuple(item.observed.loader_seconds if item.observed else 0.0 for item in facts),
    )


def format_ranks(ranks: AnalyzedRanks, facts: ProgramFacts) -> Iterator[str]:
    """Yield the lines of the part `Ranks` of an analysis."""
    report = ranks.report
    yield f"Ranks: {report.world} on this host{f', {report.backend}' if report.backend else ''}"
    yield "| Rank | Step | Of its own | Waits for other ranks | In collectives | Exposed | Memory |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for rank, peak in zip(report.ranks, ranks.memory_peaks, strict=True):
        cells = (
            rank.step_seconds, rank.own_seconds, rank.wait_seconds, rank.collective_seconds, rank.exposed_seconds
        )  # fmt: skip
        yield f"| {rank.rank} | {' | '.join(map(format_duration, cells))} | {format_bytes(peak)} |"
    yield f"- {_format_balance(report)}"
    for item in report.collectives:
        size = "" if item.bytes is None else f", {format_bytes(item.bytes)}"
        rate = "" if item.bus_rate is None else f"; {format_bytes(item.bus_rate)}/s on the bus"
        times = f"{format_duration(item.seconds)}, of which {format_duration(item.exposed_seconds)} exposed"
        yield f"- {item.kind}: {item.calls:.3g} calls a step{size}, {times}{rate}"
    if not report.collectives:
        yield "- No collective was seen in a step."
    if report.overlap is not None:
        yield f"- Overlap: a rank computes during {report.overlap:.0%} of the time of its collectives"
    for kind in report.unmatched:
        yield f"- Not every rank calls {kind} equally often: what they wait for each other there is unknown"
    yield from (f"- DistributedDataParallel: {describe_replica(replica)}" for replica in facts.replicas)
    if facts.sharded_modules:
        yield f"- fully_shard: {facts.sharded_modules} modules"


def describe_replica(replica: ReplicaFacts) -> str:
    """Return buckets and settings of a DistributedDataParallel module in words."""
    sizes = [format_bytes(size) for size in replica.buckets]
    first_sizes = ", ".join(sizes[:_LISTED]) + (", ..." if len(sizes) > _LISTED else "")
    count = f"{len(sizes)} bucket{'' if len(sizes) == 1 else 's'}"
    buckets = f"{count} ({first_sizes}), " if sizes else ""
    cap = f"filled up to {format_bytes(replica.cap_bytes)}; " if replica.cap_bytes else ""
    hook = f", hook {replica.hook}" if replica.hook else ""
    return f"{buckets}{cap}{replica.switches}{hook}"


def _format_balance(report: RanksReport) -> str:
    slowest, fastest = report.slowest, report.fastest
    if report.excess < _BALANCED:
        return "Balance: no rank takes longer than the others in every step"
    excess = format_duration(slowest.own_seconds - fastest.own_seconds)
    return (
        f"Slowest: rank {slowest.rank}, {excess} a step more than rank {fastest.rank}; imbalance: ranks wait "
        f"{report.imbalance:.0%} of a step for later ones"
    )
