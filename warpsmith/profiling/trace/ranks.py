"""Ranks of one host: their traces put together, for what each waits for and what collectives cost.

Events of all ranks are on one clock, the host's. The n-th collective of a kind in a group is the same call on
every rank, because collectives have to be called in one order.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from warpsmith.profiling.trace import region
from warpsmith.profiling.trace.collectives import Collective, classify_work
from warpsmith.profiling.trace.intervals import Interval, clip, length, subtract, union
from warpsmith.profiling.trace.rank_models import CollectiveFigures, RankFigures, RanksReport
from warpsmith.profiling.trace.read import TraceEvents
from warpsmith.profiling.trace.slices import clip_events, self_times

_SEARCH = "torch.distributed.ddp.reducer::search_unused_parameters"
_COPY = "torch.distributed.ddp.reducer::copy_bucket_to_grad"


@dataclass
class _RankCall:
    """One collective on one rank, on the host's clock."""

    collective: Collective
    begin: int
    end: int
    last_begin: int | None = None
    """Time at which the last rank began the same call; None if it could not be matched."""
    end_of_all: int = 0
    """Time at which the last rank ended it."""


@dataclass
class _RankTrace:
    """One rank: its steps, its compute and its collectives, on the host's clock."""

    rank: int
    window: Interval
    steps: list[Interval]
    compute: list[Interval]
    calls: list[_RankCall]
    count: int
    """Number of steps."""
    search: int
    """Nanoseconds of the search for unused parameters."""
    copies: int
    """Nanoseconds of copies from buckets to gradients."""

    def counted(self) -> list[_RankCall]:
        """Return the calls that begin in the steps."""
        return [call for call in self.calls if self.window[0] <= call.begin < self.window[1]]


def report_ranks(traces: Sequence[TraceEvents], steps: int | None = None) -> RanksReport:
    """Put the traces of all ranks of a run together.

    Args:
        traces: one for each rank, two or more.
        steps: number of steps that each has, if it marks none; None: one.
    """
    ranks = [_read_rank(number, events, steps or 1) for number, events in enumerate(traces)]
    unmatched = _match_calls(ranks)
    return RanksReport(
        world=len(ranks),
        backend=next((events.backend for events in traces if events.backend), ""),
        ranks=tuple(map(_rank_figures, ranks)),
        collectives=tuple(
            sorted(_collective_figures(ranks), key=lambda item: (-item.exposed_seconds, -item.seconds, item.kind))
        ),
        search_seconds=statistics.mean(_search_time(rank) / rank.count for rank in ranks) / 1e9,
        copy_seconds=statistics.mean(rank.copies / rank.count for rank in ranks) / 1e9,
        unmatched=tuple(unmatched),
    )


def _read_rank(number: int, events: TraceEvents, steps: int) -> _RankTrace:
    part = region.choose_window(events, 0.0)
    slices = (
        clip_events(events.work, part.begin, part.end)
        if events.work
        else self_times(events.operators, part.begin, part.end)
    )
    compute = union(
        piece.interval for piece in slices if classify_work(piece.event.kind, piece.event.name) == "kernels"
    )
    shift = events.origin
    return _RankTrace(
        rank=events.rank if events.rank is not None else number,
        window=(part.begin + shift, part.end + shift),
        steps=[(begin + shift, end + shift) for begin, end in part.windows],
        compute=[(begin + shift, end + shift) for begin, end in compute],
        calls=[
            _RankCall(event.collective, event.begin + shift, event.end + shift)
            for event in sorted((*events.work, *events.collectives), key=lambda event: (event.begin, event.end))
            if event.collective is not None
        ],
        count=len(part.windows) or steps,
        search=_operator_time(events, part, _SEARCH),
        copies=_operator_time(events, part, _COPY),
    )


def _operator_time(events: TraceEvents, part: region.Window, name: str) -> int:
    """Return the nanoseconds of an operator on the CPU in the steps."""
    return length(
        clip(((event.begin, event.end) for event in events.operators if event.name == name), part.begin, part.end)
    )


def _match_calls(ranks: Sequence[_RankTrace]) -> list[str]:
    """Note in each call when the last rank began it; return the kinds of calls that have no counterpart."""
    groups: defaultdict[tuple[str, str], defaultdict[int, list[_RankCall]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for number, rank in enumerate(ranks):
        for call in rank.calls:
            groups[call.collective.kind, call.collective.group][number].append(call)
    unmatched = []
    for (kind, _), by_rank in groups.items():
        members = max(len(by_rank), *(call.collective.size for calls in by_rank.values() for call in calls))
        if len(by_rank) < members or len({len(calls) for calls in by_rank.values()}) > 1:
            unmatched.append(kind)
            continue
        for same in zip(*by_rank.values(), strict=True):
            last_begin, end = max(call.begin for call in same), max(call.end for call in same)
            for call in same:
                call.last_begin, call.end_of_all = last_begin, end
    return sorted(set(unmatched))


def _rank_figures(rank: _RankTrace) -> RankFigures:
    """Return medians over the steps; of a trace that marks none, averages."""
    calls = rank.counted()
    waits = union((call.begin, min(call.end, call.last_begin)) for call in calls if call.last_begin is not None)
    waits = subtract(clip(waits, *rank.window), rank.compute)
    collectives, exposed = _spans(calls, rank)
    steps = rank.steps or [rank.window]
    parts = rank.count / len(steps)

    def median(intervals: list[Interval]) -> float:
        return statistics.median(length(clip(intervals, *step)) for step in steps) / parts / 1e9

    own = [(end - begin - length(clip(waits, begin, end))) / parts / 1e9 for begin, end in steps]
    return RankFigures(
        rank=rank.rank,
        step_seconds=median([rank.window]),
        wait_seconds=median(waits),
        own_seconds=statistics.median(own),
        fastest_own_seconds=min(own),
        slowest_own_seconds=max(own),
        collective_seconds=median(collectives),
        exposed_seconds=median(exposed),
    )


def _collective_figures(ranks: Sequence[_RankTrace]) -> Iterator[CollectiveFigures]:
    """Yield the figures of each kind."""
    kinds = sorted({call.collective.kind for rank in ranks for call in rank.counted()})
    for kind in kinds:
        own = [(rank, [call for call in rank.counted() if call.collective.kind == kind]) for rank in ranks]
        spans = [_spans(calls, rank) for rank, calls in own]
        counts = [rank.count for rank in ranks]
        sizes = [[call.collective.bytes for call in calls] for _, calls in own]
        transfers = [
            [(call, call.end_of_all - call.last_begin) for call in calls if call.last_begin is not None]
            for _, calls in own
        ]
        yield CollectiveFigures(
            kind=kind,
            calls=_mean([len(calls) for _, calls in own], counts),
            bytes=None
            if None in chain(*sizes)
            else _mean([sum(size or 0 for size in row) for row in sizes], counts),
            seconds=_mean([_seconds(all_spans) for all_spans, _ in spans], counts),
            exposed_seconds=_mean([_seconds(exposed) for _, exposed in spans], counts),
            transfer_seconds=_mean([sum(time for _, time in row) / 1e9 for row in transfers], counts)
            if any(transfers)
            else None,
            bus_rate=_bus_rate([(call.collective, time) for row in transfers for call, time in row]),
        )


def _mean(totals: Sequence[float], counts: Sequence[int]) -> float:
    """Return the average over the ranks of what each has per step."""
    return statistics.fmean(total / count for total, count in zip(totals, counts, strict=True))


def _bus_rate(transfers: Iterable[tuple[Collective, int]]) -> float | None:
    """Return the bytes per second on a link; None if no size or time is known."""
    sized = [(call, time) for call, time in transfers if call.bytes is not None]
    seconds = sum(time for _, time in sized) / 1e9
    carried = sum((call.bytes or 0) * call.bus_factor for call, _ in sized)
    return carried / seconds if seconds and carried else None


def _spans(calls: Iterable[_RankCall], rank: _RankTrace) -> tuple[list[Interval], list[Interval]]:
    """Return the time of some calls in the steps, and the part of it in which the rank computes nothing."""
    spans = union(clip(((call.begin, call.end) for call in calls), *rank.window))
    return spans, subtract(spans, rank.compute)


def _search_time(rank: _RankTrace) -> int:
    """Return the nanoseconds of the search for unused parameters, and of exposed maps that are sent alone."""
    maps, others = (
        [call for call in rank.counted() if call.collective.integers is integers] for integers in (True, False)
    )
    return rank.search + length(subtract(_spans(maps, rank)[1], _spans(others, rank)[0]))


def _seconds(intervals: Iterable[Interval]) -> float:
    return length(intervals) / 1e9
