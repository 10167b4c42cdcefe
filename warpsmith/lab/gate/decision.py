"""Decision rules: from the aggregate, the worst workload, the noise floor and the thresholds to a verdict.

Losses are losses of time. The gain that decides is one of time, or of joules where energy is the objective.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import pi, sqrt
from statistics import NormalDist
from typing import NamedTuple

from warpsmith.core import gate_rules
from warpsmith.core.campaign import Thresholds
from warpsmith.core.evaluation import Aggregate, Comparison, Decision, Energy, Verdict
from warpsmith.lab.timing import statistics

_NORMAL = NormalDist()


class ProvisionalDecision(NamedTuple):
    """Decision that the times measured so far lead to."""

    settled: bool
    """True if more repetitions cannot change it."""
    decision: Decision
    """The decision."""
    aggregate: Aggregate | None = None
    """The gain that it was made from; None at the baseline."""
    regressions: Mapping[str, float] = {}
    """Workload to speedup, for workloads that are slower by the regression threshold, and beyond the floor."""
    needs_confirmation: bool = False
    """True if fresh processes must confirm it, by `confirm_in_fresh_processes`."""
    floor: float = 0.0
    """Noise floor that the gain had to exceed."""


def accept_without_rival(sides: Sequence[str] = ()) -> Decision:
    """Accept a correct version that is timed against no other version: a baseline, or the best one in a race.

    Args:
        sides: names of the reference and the peers that it was timed beside.
    """
    company = f"timed beside {' and '.join(sides)}, and " if sides else "timed "
    return Decision(verdict=Verdict.ACCEPT, reason=f"correct everywhere; {company}against no other version")


def decide_verdict(
    aggregate: Aggregate,
    comparisons: dict[str, Comparison],
    floor: float,
    thresholds: Thresholds,
    repeats: int,
    energy: Energy | None = None,
    than: str = "the best version",
    judgement: int = 1,
) -> ProvisionalDecision:
    """Decide on a version that is correct everywhere, against the best one.

    Args:
        aggregate: geometric mean of the speedups over the best version.
        comparisons: workload to the comparison with the best version.
        floor: gain that an A/A comparison shows by chance; only what exceeds it is clear.
        thresholds: thresholds of the campaign.
        repeats: repetitions of the timing so far.
        energy: joules against the best version, if they decide; None if time decides.
        than: name of the other side in the reason.
        judgement: number of this judgement in its campaign; the later it is, the clearer a gain must be.
    """
    decisive, noise = aggregate, floor
    if energy and energy.aggregate and energy.floor:
        decisive, noise = energy.aggregate, energy.floor
    caution = required_caution(judgement)
    noise *= caution * statistics.concentration(decisive.shares)
    gain = decisive.speedup - 1
    low = decisive.speedup * (decisive.interval.low / decisive.speedup) ** caution - 1
    text = f"{_format_gain(decisive)} over {than}{' in joules a call' if energy else ''}"
    worst = f"{aggregate.worst_workload} {aggregate.worst - 1:+.1%}{' in time' if energy else ''}"
    exhausted = repeats >= thresholds.max_repeats
    least = 1 - thresholds.regression
    regressions = {
        name: comparison.speedup
        for name, comparison in comparisons.items()
        if comparison.speedup <= least and comparison.interval.high < 1 - floor
    }

    def result(
        verdict: Verdict, reason: str, settled: bool = True, ambiguous: bool = False, unsure_loss: bool = False
    ) -> ProvisionalDecision:
        decision = Decision(
            verdict=verdict,
            reason=reason,
            against="best",
            repeats=repeats,
            ambiguous=ambiguous,
            judgement=judgement,
        )
        needs_confirmation = unsure_loss or verdict.accepted
        return ProvisionalDecision(settled, decision, decisive, regressions, needs_confirmation, noise)

    if aggregate.worst <= least:
        high = comparisons[aggregate.worst_workload].interval.high
        settled, beyond_floor = high < 1 or exhausted, high < 1 - floor
        return result(
            Verdict.ROLLBACK,
            f"{text}, but {'' if beyond_floor else 'perhaps '}{worst}",
            settled=settled,
            ambiguous=settled and not beyond_floor,
            unsure_loss=beyond_floor and high >= 1 - gate_rules.SURE_LOSS_FLOORS * floor,
        )
    if decisive.interval.high - 1 <= noise:
        return result(Verdict.ROLLBACK, f"{text}: no gain beyond {_describe_floor(noise, judgement, decisive)}")
    if low <= noise:
        unclear = f"{text}: not clear of {_describe_floor(noise, judgement, decisive)}"
        return result(Verdict.ROLLBACK, unclear, settled=exhausted, ambiguous=exhausted)
    if gain < thresholds.small_gain and repeats == 0:
        small = f"{text}: below {thresholds.small_gain:.0%} and timed once"
        return result(Verdict.ROLLBACK, small, settled=exhausted, ambiguous=exhausted)
    slower = [name for name, c in comparisons.items() if c.speedup < 1 and c.interval.high < 1 - floor]
    notes = [f"slower within the limit: {', '.join(slower)} ({worst})"] if slower else []
    if costlier := _workloads_with_more_joules(energy, noise):
        notes.append(f"more joules at {', '.join(costlier)}")
    if notes:
        return result(Verdict.ACCEPT_WITH_NOTE, f"{text}; {'; '.join(notes)}")
    return result(Verdict.ACCEPT, f"{text}, {_describe_worst_case(comparisons)}")


def required_caution(judgement: int) -> float:
    """Return the factor on intervals and noise floors that a campaign's budget of false wins asks for.

    A false win passes two looks in separate processes, so that each may err with the root of the chance that the
    judgement may spend. Unwidened, an interval errs with half of `1 - CONFIDENCE` on a side.
    """
    share = gate_rules.CAMPAIGN_FALSE_WINS * 6 / (pi * judgement) ** 2
    usual = -_NORMAL.inv_cdf((1 - gate_rules.CONFIDENCE) / 2)
    return max(1.0, -_NORMAL.inv_cdf(sqrt(share)) / usual)


def _describe_floor(floor: float, judgement: int, mean: Aggregate) -> str:
    """Describe the floor, and why it is higher than the machine's."""
    reasons = [f"judgement {judgement} of the campaign"] if required_caution(judgement) > 1 else []
    reasons += ["the unequal weights of the workloads"] if statistics.concentration(mean.shares) > 1 else []
    raised = f", raised for {' and '.join(reasons)}" if reasons else ""
    return f"the noise floor of {floor:.1%}{raised}"


def _describe_worst_case(comparisons: Mapping[str, Comparison]) -> str:
    """Describe the largest loss that the intervals of the workloads do not exclude."""
    name = min(comparisons, key=lambda workload: comparisons[workload].interval.low)
    loss = 1 - comparisons[name].interval.low
    return "every workload faster" if loss < 0 else f"no workload shown slower; {name} by at most {loss:.1%}"


def _workloads_with_more_joules(energy: Energy | None, floor: float) -> list[str]:
    """List the workloads at which the version takes more joules than the best one, beyond the floor."""
    workloads = energy.workloads.items() if energy else ()
    return [name for name, joules in workloads if joules.interval and joules.interval.high < 1 - floor]


def confirm_in_fresh_processes(
    first: ProvisionalDecision, look: Callable[[], ProvisionalDecision], floor: float
) -> Decision:
    """Time a gain or a loss again in fresh processes, and return the decision that stands.

    If both looks show a gain, but differ by more than the floor and by more than a third of the smaller gain, then
    processes differ by more than the floor allows for. A third look must then show the gain too, and the lesser of
    the two later ones counts.

    Args:
        first: an acceptance, or a rollback because of workloads that got slower.
        look: times both sides in fresh processes and decides by these times alone.
        floor: noise floor that the first look's gain had to exceed.
    """
    second = look()
    if (
        first.decision.verdict.accepted
        and second.decision.verdict.accepted
        and _looks_disagree(first, second, floor)
    ):
        second = min(second, look(), key=lambda each: (each.decision.verdict.accepted, _speedup(each)))
    return combine_looks(first, second)


def _looks_disagree(first: ProvisionalDecision, second: ProvisionalDecision, floor: float) -> bool:
    less, more = sorted((_speedup(first), _speedup(second)))
    return more / less - 1 > max(floor, (less - 1) / gate_rules.UNLIKE_GAIN_DIVISOR)


def _speedup(look: ProvisionalDecision) -> float:
    if look.aggregate is None:
        raise AssertionError("a baseline is compared with nothing")
    return look.aggregate.speedup


def combine_looks(first: ProvisionalDecision, second: ProvisionalDecision) -> Decision:
    """Return the decision after both sides were timed once more, in fresh processes.

    Two processes of the same code can differ for as long as they live, because of where their memory and threads
    lie. Pairs of calls cannot show that.

    Args:
        first: an acceptance, or a rollback because of workloads that got slower.
        second: decision by the fresh processes' times alone; it must accept too, or lose at one of the same
            workloads.
    """
    if second.aggregate is None:
        raise AssertionError("a baseline is compared with nothing")
    decision = first.decision
    lost_twice = [name for name in first.regressions if name in second.regressions]
    if second.decision.verdict.accepted if decision.verdict.accepted else lost_twice:
        slower = "".join(f", {name} {second.regressions[name] - 1:+.1%}" for name in lost_twice)
        changes: dict[str, object] = {}
        reason = f"{decision.reason}; {_format_gain(second.aggregate)}{slower} in fresh processes"
    else:
        changes = {"verdict": Verdict.ROLLBACK, "ambiguous": True}
        reason = f"{decision.reason}; not confirmed in fresh processes: {second.decision.reason}"
    return decision.model_copy(update={**changes, "reason": reason[:600], "again": second.aggregate})


def hold_against_twin(decision: Decision, first: ProvisionalDecision, difference: float) -> Decision:
    """Return the decision with the difference between two processes of the best version; an acceptance stands only
    if both looks' gains are beyond it.

    Args:
        decision: decision of both looks.
        first: the first look.
        difference: largest difference of the two processes, as a share.
    """
    changes: dict[str, object] = {"twin": difference}
    looks = [mean for mean in (first.aggregate, decision.again) if mean]
    if decision.verdict.accepted and min(mean.speedup for mean in looks) - 1 <= difference:
        reason = f"{decision.reason}; but two processes of {decision.against} differ by {difference:.1%}"
        changes |= {"verdict": Verdict.ROLLBACK, "ambiguous": True, "reason": reason[:600]}
    return decision.model_copy(update=changes)


def hold_against_mean(
    provisional: ProvisionalDecision, median: float, mean: float, floor: float, exhausted: bool
) -> ProvisionalDecision:
    """Return the decision, rolled back if a version is accepted by its median calls and gains little in the mean.

    Work that one call in five does for the others is in no median. A mean of half the median's gain is enough, in
    logarithms and within the noise floor.

    Args:
        provisional: decision by the medians of times, or of joules.
        median: geometric mean over the workloads of the ratios of median times, best over candidate.
        mean: the same of trimmed means.
        floor: noise floor.
        exhausted: True if timing is not repeated any more; else it is, since load makes single calls slow.
    """
    verdict = provisional.decision
    if not verdict.verdict.accepted or mean >= sqrt(max(median, 1.0)) * (1 - floor):
        return provisional
    reason = f"{verdict.reason}; but in the mean of all calls {mean - 1:+.1%}"
    changes = {"verdict": Verdict.ROLLBACK, "reason": reason[:600], "ambiguous": exhausted}
    return provisional._replace(
        settled=exhausted, decision=verdict.model_copy(update=changes), needs_confirmation=False
    )


def _format_gain(aggregate: Aggregate) -> str:
    interval = aggregate.interval
    return f"{aggregate.speedup - 1:+.1%} [{interval.low - 1:+.1%}, {interval.high - 1:+.1%}]"
