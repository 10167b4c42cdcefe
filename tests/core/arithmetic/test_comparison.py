"""Comparisons of sizes."""

from __future__ import annotations

import pytest

from warpsmith.core.arithmetic.comparison import holds, is_comparison

AXES = ("cols", "k", "context")


@pytest.mark.parametrize(
    "text", ["cols >= k", "1 <= k <= cols", "k < cols, cols <= 4 * context", "k > 2 and cols > k"]
)
def test_comparisons_of_axes_and_numbers(text):
    assert is_comparison(text, AXES)


@pytest.mark.parametrize(
    "text",
    [
        "cols is even", "cols % 8 == 0", "0 < p <= 1", "lengths <= context", "1 <= 2", "cols",
        "cols <= k or k <= 2", "cols >= k, always", "every number is finite", "", "cols in k",
        "not cols <= k",
        "(" * 200,
    ],
)  # fmt: skip
def test_anything_else_is_words(text):
    assert not is_comparison(text, AXES)


@pytest.mark.parametrize(
    ("text", "sizes", "expected"),
    [
        ("cols >= k", (8, 8), True),
        ("cols >= k", (7, 8), False),
        ("1 <= k < cols", (9, 8), True),
        ("1 <= k < cols", (8, 8), False),
        ("k <= cols, cols <= 2 * k", (16, 8), True),
        ("k <= cols, cols <= 2 * k", (17, 8), False),
    ],
)
def test_all_of_them_hold(text, sizes, expected):
    assert holds(text, dict(zip(("cols", "k"), sizes, strict=True))) is expected
