"""The decision: mechanical, from the aggregate, the worst workload, the A/A floor and the thresholds."""

from __future__ import annotations

from typing import NamedTuple

from warpsmith.core.campaign import Thresholds
from warpsmith.core.evaluation import Aggregate, Comparison, Decision, Verdict


class Standing(NamedTuple):
    """Where a comparison with the best version stands."""

    settled: bool
    """Whether more repetitions could not change it."""
    decision: Decision
    """What it would be now."""


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
) -> Standing:
    """Decide on a version that is correct everywhere, against the best one.

    Args:
        aggregate: geometric mean of the speedups over the best version.
        comparisons: the same by workload.
        floor: the gain that an A/A comparison shows by chance.
        thresholds: the campaign's.
        repeats: repetitions of the timing so far.
    """
    gain, low = aggregate.speedup - 1, aggregate.interval.low - 1
    text = f"{_gain(aggregate)} over the best version"
    worst = f"{aggregate.worst_workload} {aggregate.worst - 1:+.1%}"
    exhausted = repeats >= thresholds.max_repeats

    def result(verdict: Verdict, reason: str, settled: bool = True, ambiguous: bool = False) -> Standing:
        decision = Decision(
            verdict=verdict, reason=reason, against="best", repeats=repeats, ambiguous=ambiguous
        )  # fmt: skip
        return Standing(settled, decision)

    if aggregate.worst <= 1 - thresholds.regression:
        clear = comparisons[aggregate.worst_workload].interval.high < 1
        return result(Verdict.ROLLBACK, f"{text}, but {worst}", settled=clear or exhausted)
    if aggregate.interval.high - 1 <= floor:
        return result(Verdict.ROLLBACK, f"{text}: no gain beyond the noise floor of {floor:.1%}")
    if low <= floor:
        unclear = f"{text}: not clear of the noise floor of {floor:.1%}"
        return result(Verdict.ROLLBACK, unclear, settled=exhausted, ambiguous=exhausted)
    if gain < thresholds.small_gain and repeats == 0:
        small = f"{text}: below {thresholds.small_gain:.0%} and timed once"
        return result(Verdict.ROLLBACK, small, settled=exhausted, ambiguous=exhausted)
    slower = [name for name, c in comparisons.items() if c.speedup < 1 and c.interval.high < 1 - floor]
    if slower:
        return result(Verdict.ACCEPT_WITH_NOTE, f"{text}; slower within the limit: {', '.join(slower)} ({worst})")
    return result(Verdict.ACCEPT, f"{text}, no workload slower")


def confirmed(first: Decision, second: Decision, again: Aggregate) -> Decision:
    """What an acceptance comes to when both sides were timed once more, in fresh processes.

    Two processes of the same code can differ for as long as they live, by where their memory and threads lie;
    pairs of calls cannot show that.

    Args:
        first: the acceptance.
        second: the decision on the fresh processes' times alone.
        again: their comparison.
    """
    if second.verdict.accepted:
        reason = f"{first.reason}; {_gain(again)} in fresh processes"
        return first.model_copy(update={"reason": reason, "again": again})
    return Decision(
        verdict=Verdict.ROLLBACK,
        reason=f"{first.reason}; not seen again in fresh processes: {second.reason}"[:600],
        against=first.against,
        repeats=first.repeats,
        ambiguous=True,
        again=again,
    )


def _gain(aggregate: Aggregate) -> str:
    interval = aggregate.interval
    return f"{aggregate.speedup - 1:+.1%} [{interval.low - 1:+.1%}, {interval.high - 1:+.1%}]"
