from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from warpsmith.core.evaluation import Comparison, Interval
from warpsmith.core.trial import (
    NEEDS,
    ORIGINAL,
    REGRESSION,
    SMALLEST_GAIN,
    SMALLEST_MEMORY_GAIN,
    NumericsCheck,
    NumericsResult,
    ProgramRules,
    TrialVerdict,
    decide_trial,
    shows_no_gain,
)

KEPT, RESTORED, INCONCLUSIVE = TrialVerdict
repeatable = settings(derandomize=True, deadline=None)


def comparison(speedup: float, below: float = 0.005, above: float = 0.005) -> Comparison:
    return Comparison(
        against=ORIGINAL,
        other_seconds=1.0,
        speedup=speedup,
        interval=Interval(low=speedup * (1 - below), high=speedup * (1 + above)),
        pairs=10,
    )


def numerics(worst: float = 0.1) -> NumericsResult:
    check = NumericsCheck(name="values", worst=worst, bound=1e-4, noise=0, detail="step 3: value is 2, not 1")
    return NumericsResult(precision="same", steps=8, seed=1, checks=(check,))


RIGHT, WRONG = numerics(), numerics(1.01)
NO_PEAKS = (None, None)

comparisons = st.lists(
    st.builds(comparison, st.floats(0.2, 5), st.floats(0, 0.2), st.floats(0, 0.2)), min_size=1, max_size=3
)
peaks = st.tuples(*[st.none() | st.integers(0, 10**12)] * 2)
purposes = st.sampled_from(["speed", "memory"])


@repeatable
@given(comparisons, peaks, purposes)
def test_wrong_numerics_are_never_kept(found, memory, purpose):
    decision = decide_trial(found, WRONG, memory, purpose)
    assert decision.verdict is RESTORED
    assert decision.reason.startswith("wrong numerics: values: step 3")


@repeatable
@given(comparisons, peaks, purposes, st.floats(0.01, 0.9))
def test_what_is_slower_than_the_limit_is_never_kept(found, memory, purpose, slower):
    found = [*found, comparison(1 - slower)]
    assert decide_trial(found, RIGHT, memory, purpose, slower).verdict is not KEPT


@repeatable
@given(comparisons, peaks)
def test_for_speed_every_pair_of_processes_must_be_clearly_faster(found, memory):
    clearly = all(one.interval.low > 1 and one.speedup >= 1 + SMALLEST_GAIN for one in found)
    assert (decide_trial(found, RIGHT, memory).verdict is KEPT) == clearly


@repeatable
@given(comparisons, peaks, purposes, st.floats(1, 3))
def test_a_faster_program_is_not_judged_worse(found, memory, purpose, more):
    better = [
        comparison(one.speedup * more, 1 - one.interval.low / one.speedup, one.interval.high / one.speedup - 1)
        for one in found
    ]
    if decide_trial(found, RIGHT, memory, purpose).verdict is KEPT:
        assert decide_trial(better, RIGHT, memory, purpose).verdict is KEPT


@repeatable
@given(st.integers(1, 10**12), st.integers(0, 10**12))
def test_for_memory_enough_of_the_peak_must_be_gone(before, after):
    kept = decide_trial([comparison(1.0)], RIGHT, (before, after), "memory").verdict is KEPT
    assert kept == (1 - after / before >= SMALLEST_MEMORY_GAIN)


@pytest.mark.parametrize(
    ("speedup", "memory", "purpose", "slower", "starts"),
    [
        (1.2, NO_PEAKS, "speed", REGRESSION, "faster: 1.200x"),
        (0.94, (100, 10), "memory", REGRESSION, "slower: 0.940x"),
        (0.94, (100, 10), "memory", 0.3, "peak memory -90.0% at 0.940x"),
        (
            0.96,
            (100, 95),
            "memory",
            REGRESSION,
            "no gain: 0.960x [0.955, 0.965], and peak memory changed by -5.0%",
        ),
        (1.003, (100, 1), "speed", REGRESSION, "no gain: 1.003x"),
        (1.2, (100, 100), "memory", REGRESSION, "faster: 1.200x"),
    ],
)
def test_the_reason_has_the_numbers_that_decided(speedup, memory, purpose, slower, starts):
    assert decide_trial([comparison(speedup)], RIGHT, memory, purpose, slower).reason.startswith(starts)


@pytest.mark.parametrize("speedup", [0.9, 1.0, 1.2])
def test_times_that_scatter_show_nothing(speedup):
    decision = decide_trial([comparison(speedup, 0.3, 0.3)], RIGHT, NO_PEAKS)
    assert decision.verdict is INCONCLUSIVE
    assert "try again on a quieter machine" in decision.reason


def test_the_least_of_several_pairs_is_told():
    assert decide_trial([comparison(1.5), comparison(1.2)], RIGHT, NO_PEAKS).reason.startswith("faster: 1.200x")


def test_a_gain_that_one_pair_alone_shows_is_told_with_both():
    """The least speedup may be the clear one: alone it would look like a gain that was called none."""
    found = decide_trial([comparison(1.15, 0.3), comparison(1.06, 0.02, 0.03)], RIGHT, NO_PEAKS)
    assert found.verdict is INCONCLUSIVE
    assert found.reason.startswith("neither a gain nor its absence is shown: 1.150x [0.")
    assert "1.060x [1.0" in found.reason


@repeatable
@given(st.builds(comparison, st.floats(0.2, 5), st.floats(0, 0.2), st.floats(0, 0.2)))
def test_a_first_pair_that_settles_it_shows_no_gain(first):
    if shows_no_gain(first):
        assert decide_trial([first], RIGHT, NO_PEAKS).verdict is RESTORED


def test_an_unclear_or_faster_first_pair_is_timed_again():
    assert not shows_no_gain(comparison(1.3))
    assert not shows_no_gain(comparison(0.94, above=0.05))
    assert shows_no_gain(comparison(0.8))
    assert shows_no_gain(comparison(1.0, 0.005, 0.005))


def test_an_entry_names_prerequisites_that_can_be_checked():
    assert ProgramRules(needs=tuple(NEEDS)).needs == tuple(NEEDS)
    with pytest.raises(ValidationError, match=r"unknown prerequisites \['luck'\]"):
        ProgramRules(needs=("gpu", "luck"))
