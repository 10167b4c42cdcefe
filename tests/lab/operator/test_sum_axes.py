"""Axes along which a reference adds nothing up."""

from __future__ import annotations

import pytest
from lab_samples import SQUARE

from warpsmith.lab.operator.sum_axes import adds_nothing_along

ROWS = SQUARE.replace('shape=("n",)', 'shape=(3, "n")')


@pytest.mark.parametrize(
    "result",
    [
        "x * x",
        "(x - x.amin(-1, keepdim=True)) / (x.amax(-1, keepdim=True) - x.amin(-1, keepdim=True))",
        "torch.cat([x[:, 1:], x[:, :1].sort(-1).values], -1)",
        "torch.where(x.argmax(-1, keepdim=True) > 1, x.cummax(-1).values, x.flip(-1))",
    ],
)
def test_values_that_are_compared_and_moved_are_not_added(workshop, result):
    assert adds_nothing_along(workshop.load("square", ROWS.replace("x * x", result)), "n")


@pytest.mark.parametrize(
    "result",
    [
        "x - x.mean(-1, keepdim=True)",
        "x.cumsum(-1)",
        "x.softmax(-1)",
        "x @ (x.T @ x)",
        "x * x.prod()",
        "torch.zeros_like(x).index_add(1, torch.zeros(x.shape[1], dtype=torch.int64), x)",
        "x * sum(x[:, i : i + 1] for i in range(x.shape[1]))",  # elements only, but as many as there are
        "x * undefined",
    ],
)
def test_any_operator_that_may_add_does(workshop, result):
    assert not adds_nothing_along(workshop.load("square", ROWS.replace("x * x", result)), "n")


def test_a_call_that_is_large_at_its_smallest_is_not_tried(workshop):
    text = ROWS.replace("shape=(3,", "shape=(1 << 20,").replace(
        "def reference(x):", "def reference(x):\n    raise SystemExit"
    )
    assert not adds_nothing_along(workshop.load("square", text), "n")
