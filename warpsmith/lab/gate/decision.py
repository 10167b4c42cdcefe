"""The decision: mechanical, from the aggregate, the worst workload, the floor and the thresholds.

Losses are those of time. The gain that decides is that of time, or of joules where energy is the objective.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from warpsmith.core.campaign import Thresholds
from warpsmith.core.evaluation import Aggregate, Comparison, Decision, Energy, Verdict

SURE_FLOORS = 3
"""A workload that is slower by more floors than this is slower in any pair of processes: one look is enough."""


class Standing(NamedTuple):
    """Where a comparison with the best version stands."""

    settled: bool
    """Whether more repetitions could not change it."""
    decision: Decision
    """What it would be now."""
    aggregate: Aggregate | None = None
    """The gain that it was made from; None at the baseline."""
    lost: Mapping[str, float] = {}
    """Workloads slower by the regression threshold, and that beyond the floor, with their speedups."""
    twice: bool = False
    """Whether it is to be looked at again in fresh processes, by `seen_again`, before it is said."""
    floor: float = 0.0
    """What the gain had to be clear of."""


def baseline() -> Decision:
    """The first correct version joins the lineage: there is nothing to be better than."""
    return Decision(
        verdict=Verdict.ACCEPT, reason="correct everywhere; there is no earlier version to be better than"
    )


def decide(
    aggregate: Aggregate,
    comparisons: dict[str, Comparison],
    floor: float,
    thresholds: Thresholds,
    repeats: int,
    energy: Energy | None = None,
    than: str = "the best version",
) -> Standing:
    """Decide on a version that is correct everywhere, against the best one.

    Args:
        aggregate: geometric mean of the speedups over the best version.
        comparisons: the same by workload.
        floor: the gain that an A/A comparison shows by chance; a gain or a loss is clear beyond it.
        thresholds: the campaign's.
        repeats: repetitions of the timing so far.
        energy: joules against the best version, where these are to be less; None: time is.
        than: what the reason calls the other side.
    """
    decisive, noise = aggregate, floor
    if energy and energy.aggregate and energy.floor:
        decisive, noise = energy.aggregate, energy.floor
    gain, low = decisive.speedup - 1, decisive.interval.low - 1
    text = f"{_gain(decisive)} over {than}{' in joules a call' if energy else ''}"
    worst = f"{aggregate.worst_workload} {aggregate.worst - 1:+.1%}{' in time' if energy else ''}"
    exhausted = repeats >= thresholds.max_repeats
    least = 1 - thresholds.regression
    lost = {n: c.speedup for n, c in comparisons.items() if c.speedup <= least and c.interval.high < 1 - floor}

    def result(
        verdict: Verdict, reason: str, settled: bool = True, ambiguous: bool = False, twice: bool = False
    ) -> Standing:
        decision = Decision(
            verdict=verdict, reason=reason, against="best", repeats=repeats, ambiguous=ambiguous
        )  # fmt: skip
        return Standing(settled, decision, decisive, lost, twice or verdict.accepted, noise)

    if aggregate.worst <= least:
        high = comparisons[aggregate.worst_workload].interval.high
        settled, beyond = high < 1 or exhausted, high < 1 - floor
        return result(
            Verdict.ROLLBACK,
            f"{text}, but {'' if beyond else 'perhaps '}{worst}",
            settled=settled,
            ambiguous=settled and not beyond,
            twice=beyond and high >= 1 - SURE_FLOORS * floor,
        )
    if decisive.interval.high - 1 <= noise:
        return result(Verdict.ROLLBACK, f"{text}: no gain beyond the noise floor of {noise:.1%}")
    if low <= noise:
        unclear = f"{text}: not clear of the noise floor of {noise:.1%}"
        return result(Verdict.ROLLBACK, unclear, settled=exhausted, ambiguous=exhausted)
    if gain < thresholds.small_gain and repeats == 0:
        small = f"{text}: below {thresholds.small_gain:.0%} and timed once"
        return result(Verdict.ROLLBACK, small, settled=exhausted, ambiguous=exhausted)
    slower = [name for name, c in comparisons.items() if c.speedup < 1 and c.interval.high < 1 - floor]
    notes = [f"slower within the limit: {', '.join(slower)} ({worst})"] if slower else []
    if more := _more_joules(energy, noise):
        notes.append(f"more joules at {', '.join(more)}")
    if notes:
        return result(Verdict.ACCEPT_WITH_NOTE, f"{text}; {'; '.join(notes)}")
    return result(Verdict.ACCEPT, f"{text}, no workload slower")


def _more_joules(energy: Energy | None, floor: float) -> list[str]:
    """Workloads at which the version takes more than the best one, beyond the floor."""
    read = energy.workloads.items() if energy else ()
    return [name for name, joules in read if joules.interval and joules.interval.high < 1 - floor]


def seen_again(first: Standing, look: Callable[[], Standing], floor: float) -> Decision:
    """What a gain or a loss comes to, looked at again in fresh processes.

    Where both looks show a gain, but lie further apart than the floor and than a third of it, processes differ by
    more than the floor allows for: a third look must show it too, and the lesser of the two later ones counts.

    Args:
        first: an acceptance, or a rollback for workloads that got slower.
        look: times both sides in fresh processes; where their times alone stand.
        floor: what the first look's gain had to be clear of.
    """
    second = look()
    if first.decision.verdict.accepted and second.decision.verdict.accepted and _unlike(first, second, floor):
        second = min(second, look(), key=lambda each: (each.decision.verdict.accepted, _speedup(each)))
    return confirmed(first, second)


def _unlike(one: Standing, other: Standing, floor: float) -> bool:
    less, more = sorted((_speedup(one), _speedup(other)))
    return more / less - 1 > max(floor, (less - 1) / SURE_FLOORS)


def _speedup(standing: Standing) -> float:
    if standing.aggregate is None:
        raise AssertionError("a baseline is compared with nothing")
    return standing.aggregate.speedup


def confirmed(first: Standing, second: Standing) -> Decision:
    """What a gain or a loss comes to when both sides were timed once more, in fresh processes.

    Two processes of the same code can differ for as long as they live, by where their memory and threads lie;
    pairs of calls cannot show that.

    Args:
        first: an acceptance, or a rollback for workloads that got slower.
        second: where the fresh processes' times alone stand: they must accept too, or lose at one of the same
            workloads.
    """
    if second.aggregate is None:
        raise AssertionError("a baseline is compared with nothing")
    said = first.decision
    both = [name for name in first.lost if name in second.lost]
    if second.decision.verdict.accepted if said.verdict.accepted else both:
        slower = "".join(f", {name} {second.lost[name] - 1:+.1%}" for name in both)
        changes: dict[str, object] = {}
        reason = f"{said.reason}; {_gain(second.aggregate)}{slower} in fresh processes"
    else:
        changes = {"verdict": Verdict.ROLLBACK, "ambiguous": True}
        reason = f"{said.reason}; not seen again in fresh processes: {second.decision.reason}"
    return said.model_copy(update={**changes, "reason": reason[:600], "again": second.aggregate})


def _gain(aggregate: Aggregate) -> str:
    interval = aggregate.interval
    return f"{aggregate.speedup - 1:+.1%} [{interval.low - 1:+.1%}, {interval.high - 1:+.1%}]"
