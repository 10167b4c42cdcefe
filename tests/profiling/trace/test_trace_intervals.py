"""Arithmetic on intervals, against sets of whole points."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from warpsmith.profiling.trace.intervals import Interval, clip, exclusive_time, length, subtract, union

interval = st.tuples(st.integers(0, 40), st.integers(0, 12)).map(lambda pair: (pair[0], pair[0] + pair[1]))
intervals = st.lists(interval, max_size=12)


def points(given: list[Interval]) -> set[int]:
    return {point for begin, end in given for point in range(begin, end)}


@given(intervals)
def test_a_union_is_the_same_time_without_overlap(some: list[Interval]):
    merged = union(some)
    assert points(merged) == points(some)
    assert length(merged) == len(points(some))
    edges = [edge for pair in merged for edge in pair]
    assert edges == sorted(set(edges))


@given(intervals, intervals)
def test_subtraction_leaves_what_is_in_the_first_alone(first: list[Interval], second: list[Interval]):
    left = subtract(union(first), union(second))
    assert points(left) == points(first) - points(second)
    assert left == union(left)


@given(intervals, st.integers(0, 50), st.integers(0, 50))
def test_a_clip_keeps_what_lies_between(some: list[Interval], begin: int, end: int):
    assert points(clip(some, begin, end)) == points(some) & set(range(begin, end))


@given(st.lists(st.tuples(st.sampled_from("abc"), interval), max_size=12))
def test_time_alone_is_time_in_which_no_other_key_runs(spans: list[tuple[str, Interval]]):
    of = {key: points([span for name, span in spans if name == key]) for key in "abc"}
    found = exclusive_time(spans)
    for key in "abc":
        others = set[int]().union(*(of[other] for other in "abc" if other != key))
        assert found.get(key, 0) == len(of[key] - others)
