from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsmith.core import gate_rules
from warpsmith.core.campaign import Thresholds
from warpsmith.core.evaluation import Aggregate, Comparison, Energy, Interval, Joules, Verdict
from warpsmith.lab.gate import decision
from warpsmith.lab.gate.decision import ProvisionalDecision

FLOOR = 0.01


def aggregate(value, low, high, worst=None, name="b"):
    return Aggregate(
        against="best",
        speedup=value,
        interval=Interval(low=low, high=high),
        worst_workload=name,
        worst=worst or value,
    )


def comparison(value, low, high):
    return Comparison(
        against="best", other_seconds=1e-3, speedup=value, interval=Interval(low=low, high=high), pairs=10
    )


def decide(whole, a=(1.2, 1.1, 1.3), b=(1.2, 1.1, 1.3), repeats=0, thresholds=None):
    comparisons = {"a": comparison(*a), "b": comparison(*b)}
    return decision.decide_verdict(whole, comparisons, FLOOR, thresholds or Thresholds(), repeats)


GAIN = aggregate(1.2, 1.15, 1.25)
CASES = {
    "a clear gain": (GAIN, {}, True, "ACCEPT", False),
    "a gain with a workload down within the limit": (
        aggregate(1.2, 1.15, 1.25, 0.97), {"b": (0.97, 0.96, 0.98)}, True, "ACCEPT_WITH_NOTE", False),
    "a gain with a workload down by noise": (
        aggregate(1.2, 1.15, 1.25, 0.99), {"b": (0.99, 0.96, 1.02)}, True, "ACCEPT", False),
    "a clear regression": (
        aggregate(1.2, 1.15, 1.25, 0.94), {"b": (0.94, 0.93, 0.95)}, True, "ROLLBACK", False),
    "a regression exactly at the limit": (
        aggregate(1.2, 1.15, 1.25, 0.95), {"b": (0.95, 0.94, 0.96)}, True, "ROLLBACK", False),
    "an unclear regression": (
        aggregate(1.2, 1.15, 1.25, 0.94), {"b": (0.94, 0.80, 1.1)}, False, "ROLLBACK", False),
    "an unclear regression in the end": (
        aggregate(1.2, 1.15, 1.25, 0.94), {"b": (0.94, 0.80, 1.1), "repeats": 3}, True, "ROLLBACK", True),
    "a regression within the floor": (
        aggregate(1.2, 1.15, 1.25, 0.94), {"b": (0.94, 0.93, 0.995)}, True, "ROLLBACK", True),
    "slower": (aggregate(0.98, 0.97, 0.99), {}, True, "ROLLBACK", False),
    "within the noise": (aggregate(1.002, 0.999, 1.008), {}, True, "ROLLBACK", False),
    "not clear of the noise": (aggregate(1.03, 1.005, 1.06), {}, False, "ROLLBACK", False),
    "ambiguous": (aggregate(1.03, 1.005, 1.06), {"repeats": 3}, True, "ROLLBACK", True),
    "a small gain": (aggregate(1.015, 1.012, 1.018), {}, False, "ROLLBACK", False),
    "a small gain repeated": (aggregate(1.015, 1.012, 1.018), {"repeats": 1}, True, "ACCEPT", False),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_table(case):
    whole, changes, settled, verdict, ambiguous = CASES[case]
    found = decide(whole, **changes)
    assert (found.settled, found.decision.verdict, found.decision.ambiguous) == (settled, verdict, ambiguous)
    assert found.decision.against == "best"
    assert found.decision.repeats == changes.get("repeats", 0)


def test_reasons_hold_the_numbers():
    assert decide(GAIN).decision.reason.startswith("+20.0% [+15.0%, +25.0%] over the best version")
    reason = decide(aggregate(1.2, 1.15, 1.25, 0.97), b=(0.97, 0.96, 0.98)).decision.reason
    assert reason.endswith("slower within the limit: b (b -3.0%)")
    assert decide(aggregate(1.2, 1.15, 1.25, 0.9), b=(0.9, 0.8, 0.95)).decision.reason.endswith("but b -10.0%")


def test_a_gain_is_accepted_that_fresh_processes_show_too():
    first, again = decide(GAIN), aggregate(1.1, 1.08, 1.12)
    found = decision.combine_looks(first, decide(again))
    assert first.needs_confirmation
    assert (found.verdict, found.ambiguous, found.again) == (Verdict.ACCEPT, False, again)
    assert found.reason == f"{first.decision.reason}; +10.0% [+8.0%, +12.0%] in fresh processes"


@pytest.mark.parametrize(
    ("looks", "verdict", "taken"),
    [
        ([1.18], Verdict.ACCEPT, 1),
        ([1.1, 1.09], Verdict.ACCEPT, 2),
        ([1.1, 1.15], Verdict.ACCEPT, 2),
        ([1.1, 0.98], Verdict.ROLLBACK, 2),
        ([0.98], Verdict.ROLLBACK, 1),
        ([1.1, 1.005], Verdict.ROLLBACK, 2),
    ],
)
def test_a_third_look_where_two_are_unlike(looks, verdict, taken):
    seen = []

    def look():
        speedup = looks[len(seen)]
        seen.append(speedup)
        return decide(aggregate(speedup, speedup - 0.01, speedup + 0.01))

    found = decision.confirm_in_fresh_processes(decide(GAIN), look, 0.02)
    assert (found.verdict, len(seen)) == (verdict, taken)
    assert found.again.speedup == min(looks)


def test_a_gain_that_fresh_processes_do_not_show_is_ambiguous():
    first, second = decide(GAIN, repeats=2), decide(aggregate(0.9, 0.88, 0.92))
    found = decision.combine_looks(first, second)
    assert (found.verdict, found.ambiguous, found.repeats) == (Verdict.ROLLBACK, True, 2)
    assert found.again == second.aggregate
    assert found.reason == f"{first.decision.reason}; not confirmed in fresh processes: {second.decision.reason}"


LOSS = (0.94, 0.93, 0.985)
"""A clear loss of less than three floors."""


def test_a_loss_is_said_that_fresh_processes_show_too():
    first = decide(aggregate(1.0, 0.99, 1.01, 0.94), b=LOSS)
    assert first.decision.reason.endswith("but b -6.0%")
    again = decide(aggregate(1.0, 0.98, 1.01, 0.9, "a"), a=(0.9, 0.89, 0.91), b=(0.93, 0.92, 0.985))
    found = decision.combine_looks(first, again)
    assert first.needs_confirmation
    assert (found.verdict, found.ambiguous, found.again) == (Verdict.ROLLBACK, False, again.aggregate)
    assert found.reason == f"{first.decision.reason}; +0.0% [-2.0%, +1.0%], b -7.0% in fresh processes"


def test_a_loss_elsewhere_does_not_show_the_same_one():
    first = decide(aggregate(1.0, 0.99, 1.01, 0.94), b=LOSS)
    elsewhere = decide(aggregate(1.0, 0.98, 1.01, 0.94, "a"), a=LOSS, b=(1.0, 0.99, 1.01))
    found = decision.combine_looks(first, elsewhere)
    assert (found.verdict, found.ambiguous) == (Verdict.ROLLBACK, True)
    assert found.reason.startswith(f"{first.decision.reason}; not confirmed in fresh processes: ")


@pytest.mark.parametrize(
    ("high", "ambiguous", "twice"), [(0.96, False, False), (0.975, False, True), (0.995, True, False)]
)
def test_a_second_look_is_for_a_loss_beyond_one_floor_and_within_three(high, ambiguous, twice):
    found = decide(GAIN.model_copy(update={"worst": 0.94}), b=(0.94, 0.9, high))
    assert (found.settled, found.decision.ambiguous, found.needs_confirmation) == (True, ambiguous, twice)
    assert ("but perhaps b" in found.decision.reason) is ambiguous


def test_the_first_correct_version_is_accepted():
    found = decision.accept_without_rival(["reference", "torch.compile"])
    assert found.verdict is Verdict.ACCEPT
    assert found.against is None
    beside = "timed beside reference and torch.compile"
    assert found.reason == f"correct everywhere; {beside}, and against no other version"


def joules(saving, low, high, **workloads):
    each = {
        name: Joules(
            joules=1,
            readings=6,
            best_joules=three[0],
            saving=three[0],
            interval=Interval(low=three[1], high=three[2]),
        )
        for name, three in workloads.items()
    }
    return Energy(workloads=each, aggregate=aggregate(saving, low, high), floor=0.03)


LEVEL = aggregate(1.0, 0.999, 1.001)
"""Times where energy decides; their floor is a third of that of energy."""

BY_ENERGY = {
    "less energy in the same time": (LEVEL, joules(1.2, 1.15, 1.25), {}, True, "ACCEPT", False),
    "less energy, slower within the limit": (
        aggregate(0.98, 0.97, 0.99, 0.97), joules(1.2, 1.15, 1.25), {"b": (0.97, 0.96, 0.98)},
        True, "ACCEPT_WITH_NOTE", False),
    "less energy, and more at a workload": (
        LEVEL, joules(1.2, 1.15, 1.25, a=(0.9, 0.88, 0.92)), {}, True, "ACCEPT_WITH_NOTE", False),
    "less energy, and more at a workload within the floor": (
        LEVEL, joules(1.2, 1.15, 1.25, a=(0.97, 0.96, 0.98)), {}, True, "ACCEPT", False),
    "less energy, and a workload too slow": (
        aggregate(1.2, 1.15, 1.25, 0.94), joules(1.5, 1.45, 1.55), {"b": (0.94, 0.93, 0.95)},
        True, "ROLLBACK", False),
    "faster for more energy": (aggregate(1.3, 1.25, 1.35), joules(0.9, 0.88, 0.92), {}, True, "ROLLBACK", False),
    "faster for the same energy": (
        aggregate(1.3, 1.25, 1.35), joules(1.01, 0.99, 1.02), {}, True, "ROLLBACK", False),
    "not clear of its own floor": (LEVEL, joules(1.05, 1.02, 1.08), {}, False, "ROLLBACK", False),
    "not clear of its own floor in the end": (
        LEVEL, joules(1.05, 1.02, 1.08), {"repeats": 3}, True, "ROLLBACK", True),
}  # fmt: skip


@pytest.mark.parametrize("case", BY_ENERGY)
def test_by_energy(case):
    whole, energy, changes, settled, verdict, ambiguous = BY_ENERGY[case]
    repeats = changes.get("repeats", 0)
    comparisons = {"a": comparison(1.0, 0.999, 1.001), "b": comparison(*changes.get("b", (1.0, 0.999, 1.001)))}
    found = decision.decide_verdict(whole, comparisons, FLOOR, Thresholds(), repeats, energy)
    assert (found.settled, found.decision.verdict, found.decision.ambiguous) == (settled, verdict, ambiguous)
    assert (found.aggregate, found.floor) == (energy.aggregate, energy.floor)
    assert "over the best version in joules a call" in found.decision.reason


def test_a_reason_by_energy_names_both_measures():
    slow = aggregate(1.2, 1.15, 1.25, 0.94)
    comparisons = {"b": comparison(0.94, 0.93, 0.95)}
    found = decision.decide_verdict(slow, comparisons, FLOOR, Thresholds(), 0, joules(1.5, 1.45, 1.55))
    assert found.decision.reason.startswith("+50.0% [+45.0%, +55.0%] over the best version in joules a call")
    assert found.decision.reason.endswith("but b -6.0% in time")
    more = decision.decide_verdict(LEVEL, {"b": comparison(1, 0.99, 1.01)}, FLOOR, Thresholds(), 0,
                           joules(1.2, 1.15, 1.25, a=(0.9, 0.88, 0.92)))  # fmt: skip
    assert more.decision.reason.endswith("; more joules at a")


@dataclass(frozen=True)
class Case:
    """All inputs of a decision."""

    workloads: dict[str, tuple[float, float, float]]
    whole: tuple[float, float, float]
    floor: float
    thresholds: Thresholds
    repeats: int

    def decide(self, factor=1.0, repeats=None):
        """Decide, with every speedup `factor` times as large."""
        each = {name: comparison(*(x * factor for x in three)) for name, three in self.workloads.items()}
        worst = min(each, key=lambda name: each[name].speedup)
        whole = aggregate(*(x * factor for x in self.whole), each[worst].speedup, worst)
        repeats = self.repeats if repeats is None else repeats
        return decision.decide_verdict(whole, each, self.floor, self.thresholds, repeats)


repeatable = settings(derandomize=True, deadline=None, max_examples=300)
ratios = st.one_of(st.floats(1, 1.06), st.floats(0.9, 1.15), st.floats(0.2, 5))
speedups = st.tuples(ratios, ratios, ratios).map(lambda three: tuple(sorted(three)[i] for i in (1, 0, 2)))
cases = st.builds(
    Case,
    workloads=st.dictionaries(st.sampled_from("abc"), speedups, min_size=1),
    whole=speedups,
    floor=st.floats(1e-4, 0.1),
    thresholds=st.builds(
        Thresholds,
        regression=st.floats(0.01, 0.2),
        small_gain=st.floats(0.001, 0.1),
        max_repeats=st.integers(0, 4),
    ),
    repeats=st.integers(0, 5),
)


@repeatable
@given(cases)
def test_what_is_accepted_is_settled_clear_of_the_floor_and_slow_nowhere(case):
    found = case.decide()
    if found.decision.verdict.accepted:
        assert found.settled
        assert not found.decision.ambiguous
        assert case.whole[1] - 1 > case.floor
        assert min(three[0] for three in case.workloads.values()) > 1 - case.thresholds.regression
        assert case.whole[0] - 1 >= case.thresholds.small_gain or case.repeats


@repeatable
@given(cases, st.floats(1, 1.5))
def test_a_larger_gain_is_never_worse(case, factor):
    if case.decide().decision.verdict.accepted:
        assert case.decide(factor).decision.verdict.accepted


@repeatable
@given(cases)
def test_a_clear_gain_everywhere_is_accepted(case):
    found = case.decide(1.2 / min(low for _, low, _ in (case.whole, *case.workloads.values())), repeats=1)
    assert found.decision.verdict is Verdict.ACCEPT


@repeatable
@given(cases, cases)
def test_a_second_look_makes_no_acceptance_and_only_what_both_show_is_said(one, other):
    first, second = one.decide(), other.decide()
    found = decision.combine_looks(first, second)
    assert found.verdict.accepted == (first.decision.verdict.accepted and second.decision.verdict.accepted)
    if not found.verdict.accepted and not found.ambiguous:
        assert not first.decision.verdict.accepted
        assert first.regressions.keys() & second.regressions.keys()
    assert found.again == second.aggregate


@repeatable
@given(cases)
def test_what_is_seen_twice_alike_stands(case):
    found = case.decide()
    if found.needs_confirmation:
        assert decision.combine_looks(found, found).verdict is found.decision.verdict
        assert not decision.combine_looks(found, found).ambiguous


@repeatable
@given(cases)
def test_a_gain_or_a_loss_is_a_fact_after_two_looks_or_by_three_floors(case):
    """A loss: a workload down by the regression threshold."""
    found = case.decide()
    worst = min(case.workloads.values())
    slower = worst[0] <= 1 - case.thresholds.regression
    if slower:
        assert found.decision.verdict is Verdict.ROLLBACK
        assert found.settled is (worst[2] < 1 or case.repeats >= case.thresholds.max_repeats)
    if found.settled and not found.decision.ambiguous and not found.needs_confirmation:
        assert not found.decision.verdict.accepted
        assert not slower or worst[2] < 1 - gate_rules.SURE_LOSS_FLOORS * case.floor
    assert all(case.workloads[name][2] < 1 - case.floor for name in found.regressions)


@repeatable
@given(cases)
def test_repeating_comes_to_an_end(case):
    found = case.decide(repeats=case.thresholds.max_repeats)
    assert found.settled
    assert found.decision.repeats == case.thresholds.max_repeats


@repeatable
@given(cases)
def test_the_same_numbers_give_the_same_decision(case):
    found = case.decide()
    assert found == case.decide()
    assert found.settled or not found.decision.ambiguous  # a decision is ambiguous if repeating did not settle it


@pytest.mark.parametrize(
    ("b", "said"),
    [((1.2, 1.1, 1.3), "every workload faster"), ((1.01, 0.98, 1.04), "b by at most 2.0%")],
)
def test_an_acceptance_names_the_largest_loss_that_is_not_excluded(b, said):
    found = decide(aggregate(1.2, 1.15, 1.25, min(1.2, b[0])), b=b)
    assert found.decision.verdict is Verdict.ACCEPT
    assert found.decision.reason.endswith(said)


@pytest.mark.parametrize(("speedup", "exhausted"), [(0.9, True), (0.9, False), (0.99, False), (1.3, False)])
def test_a_gain_of_the_median_alone_does_not_count(speedup, exhausted):
    accepted = decision.accept_without_rival()
    provisional = ProvisionalDecision(True, accepted, needs_confirmation=True)
    held = decision.hold_against_mean(provisional, 1.0, speedup, 0.02, exhausted)
    if speedup > 0.98:
        assert held is provisional
        return
    assert held.decision.verdict is Verdict.ROLLBACK
    assert (held.settled, held.decision.ambiguous, held.needs_confirmation) == (exhausted, exhausted, False)
    assert "in the mean of all calls -10.0%" in held.decision.reason


@pytest.mark.parametrize(("median", "mean", "holds"), [(4.0, 1.9, False), (4.0, 2.1, True), (1.03, 1.0, True)])
def test_half_of_a_gain_must_be_in_the_mean(median, mean, holds):
    provisional = ProvisionalDecision(True, decision.accept_without_rival())
    held = decision.hold_against_mean(provisional, median, mean, 0.02, exhausted=True)
    assert (held is provisional) == holds
