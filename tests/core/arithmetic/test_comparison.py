"""Comparisons of sizes."""

from __future__ import annotations

import pytest

from warpsmith.core.arithmetic.comparison import holds, select_comparisons

AXES = ("cols", "k", "context")


@pytest.mark.parametrize(
    "text",
    [
        "cols >= k", "1 <= k <= cols", "k < cols, cols <= 4 * context", "k > 2 and cols > k", "cols % 8 == 0",
        "cols == 2 * k",
    ],
)  # fmt: skip
def test_comparisons_of_axes_and_numbers(text):
    assert select_comparisons((text, "in words"), AXES) == (text,)


@pytest.mark.parametrize(
    "text",
    [
        "cols is even", "cols % 8 != 0", "label == k", "0 < p <= 1", "lengths <= context", "1 <= 2", "cols",
        "cols <= k or k <= 2", "cols >= k, always", "every number is finite", "", "cols in k",
        "not cols <= k",
        "(" * 200,
    ],
)  # fmt: skip
def test_anything_else_is_words(text):
    assert not select_comparisons((text,), AXES)


@pytest.mark.parametrize(
    ("text", "sizes", "expected"),
    [
        ("cols >= k", (8, 8), True),
        ("cols >= k", (7, 8), False),
        ("1 <= k < cols", (9, 8), True),
        ("1 <= k < cols", (8, 8), False),
        ("k <= cols, cols <= 2 * k", (16, 8), True),
        ("k <= cols, cols <= 2 * k", (17, 8), False),
        ("cols % k == 0", (16, 8), True),
        ("cols % k == 0", (20, 8), False),
        ("cols % k == 0", (16, 0), False),
        ("cols == 2 * k + 1", (17, 8), True),
    ],
)
def test_all_of_them_hold(text, sizes, expected):
    assert holds(text, dict(zip(("cols", "k"), sizes, strict=True))) is expected


def test_a_side_that_is_no_arithmetic_is_an_error():
    with pytest.raises(ValueError, match="more than arithmetic"):
        holds("cols << 2 >= k", {"cols": 8, "k": 8})
