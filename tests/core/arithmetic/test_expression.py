"""Arithmetic over axes: the values of Python, and nothing but arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsmith.core.arithmetic.expression import evaluate

AXES = {"rows": 7, "cols": 4096, "k": 3}

atoms = st.one_of(
    st.integers(0, 10_000).map(str),
    st.floats(0, 1e6, allow_nan=False).map(repr),
    st.sampled_from(sorted(AXES)),
)


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner).map(" ".join),
        st.tuples(inner, st.integers(0, 3)).map(lambda pair: f"({pair[0]}) ** {pair[1]}"),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"-({text})"),
    )


@settings(max_examples=300, deadline=None)
@given(st.recursive(atoms, _compound, max_leaves=8))
def test_arithmetic_is_that_of_python(text: str):
    try:
        expected = eval(text, {"__builtins__": {}}, dict(AXES))
    except (ZeroDivisionError, OverflowError):
        return
    found = evaluate(text, AXES)
    assert (found, type(found)) == (expected, type(expected)) or expected != expected


def test_it_leaves_the_axes_alone():
    axes = dict(AXES)
    evaluate("rows * cols", axes)
    assert axes == AXES


@pytest.mark.parametrize("text", ["depth", "2 * Rows", "__builtins__", "rows + depth"])
def test_unknown_names_are_refused_by_name(text: str):
    with pytest.raises(ValueError, match=r"is not an axis; the axes are \['cols', 'k', 'rows'\]"):
        evaluate(text, AXES)


@pytest.mark.parametrize(
    "text",
    [
        "max(rows, cols)", "__import__('os')", "rows.bit_length()", "rows.real", "[rows]", "(rows, cols)",
        "rows if cols else k", "rows < cols", "rows and cols", "lambda: 1", "'rows'", "rows[0]", "~rows",
        "rows @ cols", "rows << 2", "rows | 1", "f'{rows}'", "(rows := 2)", "None", "1j", "{rows}",
    ],
)  # fmt: skip
def test_anything_but_arithmetic_is_refused(text: str):
    with pytest.raises(ValueError, match="more than arithmetic"):
        evaluate(text, AXES)


@pytest.mark.parametrize("text", ["", "rows *", "rows cols", "rows = 2", "import os", "1; 2", "("])
def test_what_is_no_expression_is_refused(text: str):
    with pytest.raises(ValueError, match="not an arithmetic expression"):
        evaluate(text, AXES)
