"""Formulas of sizes, found again from their values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from warpsmith.core.arithmetic.expression import evaluate
from warpsmith.core.arithmetic.size_formula import solve_size

SIZES = st.integers(2, 40)


@given(
    st.permutations(["a", "b", "c"]), st.integers(1, 3), st.integers(1, 4), st.lists(SIZES, min_size=6, max_size=6)
)
def test_a_product_of_axes_is_found_again(names, count, factor, sizes):
    samples = [
        dict(zip("abc", at, strict=True)) for at in ((3, 5, 7), (67, 5, 7), (3, 67, 7), (3, 5, 67), sizes[:3])
    ]
    wanted = " * ".join([str(factor), *names[:count]])
    values = [int(evaluate(wanted, sample)) for sample in samples]
    found = solve_size(values, samples)
    assert found is not None
    assert [evaluate(str(found), sample) for sample in samples] == values


@given(st.integers(2, 12), st.integers(0, 3), st.lists(st.integers(1, 3), min_size=12, max_size=12))
def test_a_sum_of_many_axes_is_found_again(count, more, factors):
    at = {f"d{n}": 3 + n for n in range(count)}
    samples = [at, *({**at, name: size} for name in at for size in (67, 129))]
    values = [more + sum(f * sample[name] for f, name in zip(factors, at)) for sample in samples]  # noqa: B905
    found = solve_size(values, samples)
    assert [evaluate(str(found), sample) for sample in samples] == values
    assert str(found).count("+") == count - 1 + (more > 0)


def test_a_sum_that_few_calls_only_allow_is_no_rule():
    few = [{"a": 3, "b": 5, "c": 2}, {"a": 4, "b": 5, "c": 3}, {"a": 4, "b": 6, "c": 5}]
    assert solve_size([10, 12, 15], few) is None
    assert solve_size([15, 335, 201], [{"a": 3, "b": 5}, {"a": 67, "b": 5}, {"a": 3, "b": 67}]) == "a * b"


def test_lines_numbers_and_what_follows_no_rule():
    samples = [{"n": 8, "k": 3}, {"n": 67, "k": 3}, {"n": 129, "k": 3}]
    assert solve_size([4, 4, 4], samples) == 4
    assert solve_size([6, 65, 127], samples) == "n - 2"
    assert solve_size([17, 135, 259], samples) == "2 * n + 1"
    assert solve_size([4, 34, 65], samples) == "(n + 1) // 2"
    assert solve_size([3, 32, 63], samples) == "n // 2 - 1"
    assert solve_size([4, 30, 66], samples) is None


def test_powers_of_an_axis_are_products():
    samples = [{"b": 2, "s": 16}, {"b": 5, "s": 16}, {"b": 2, "s": 19}, {"b": 2, "s": 23}]
    assert solve_size([6 * p["b"] * p["s"] ** 2 for p in samples], samples) == "6 * b * s * s"
