"""Sizes that are moved until they hold what callers promise."""

from __future__ import annotations

import itertools

import pytest

from warpsmith.core.definition import Definition, TensorSpec, Workload
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.promised_sizes import draw_promised_workload, fit_to_promises, list_loose_axes

AXES = ("a", "b", "c")


def define(*promises: str, sizes: tuple[int, int, int] = (128, 128, 256)) -> Definition:
    return Definition(
        name="sums",
        description="y = x",
        axes={axis: f"axis {axis}" for axis in AXES},
        inputs={"x": TensorSpec(shape=AXES)},
        outputs={"y": TensorSpec(shape=AXES)},
        flops="a",
        constraints=promises,
        workloads=(at(*sizes),),
    )


def at(*sizes: int) -> Workload:
    return Workload(name="w", axes=dict(zip(AXES, sizes, strict=True)))


@pytest.mark.parametrize(
    ("promise", "drawn", "expected"),
    [
        ("a % 128 == 0", (300, 5, 7), (256, 5, 7)),
        ("a % 128 == 0", (9, 5, 7), (128, 5, 7)),
        ("a % 128 == 0", (256, 5, 7), (256, 5, 7)),
        ("(a + 1) % 8 == 0", (16, 5, 7), (15, 5, 7)),
        ("c == 2 * b", (9, 5, 7), (9, 5, 10)),
        ("c == 2 * b", (9, 5, 30), (9, 5, 10)),
        ("c == 2 * b", (9, 5, 8), (9, 4, 8)),
        ("c == b // 2 * 4", (9, 5, 3), (9, 5, 8)),
        ("a % 8 == 0, c == 2 * b, b == a", (9, 5, 7), (8, 8, 16)),
        ("c % b == 0", (9, 5, 13), (9, 5, 10)),
        ("c % b == 0", (9, 5, 3), (9, 3, 3)),
        ("b <= c", (9, 5, 3), (9, 3, 3)),
        ("b < c", (9, 5, 3), (9, 2, 3)),
        ("b < c", (9, 3, 3), (9, 2, 3)),
        ("b < c", (9, 1, 1), (9, 1, 2)),
        ("c >= 1000", (9, 5, 3), (9, 5, 1000)),
        ("1 <= a <= b <= c", (9, 5, 3), (5, 5, 5)),
        ("a > b > c", (3, 5, 9), (3, 2, 1)),
        ("a % b == 0", (9, 0, 3), (9, 1, 3)),
    ],
)
def test_the_nearest_sizes_hold_a_promise(promise, drawn, expected):
    definition = define(promise, sizes=expected)
    assert tuple(fit_to_promises(definition, at(*drawn), AXES).axes.values()) == expected


def test_what_a_workload_is_about_stays_where_another_axis_may_move():
    definition = define("1 <= a <= b <= c")
    for kept, expected in (("a", (60, 60, 60)), ("b", (5, 5, 9)), ("c", (5, 5, 9))):
        fitted = fit_to_promises(definition, at(60, 5, 9), AXES, [kept])
        assert tuple(fitted.axes.values()) == expected
    alone = fit_to_promises(define("a % 128 == 0"), at(60, 5, 9), AXES, ["a"])
    assert alone.axes == {"a": 128, "b": 5, "c": 9}


def test_axes_that_may_not_move_stay():
    definition = define("c == 2 * b")
    assert fit_to_promises(definition, at(9, 4, 7), ["a", "b"]) == at(9, 4, 7)
    assert fit_to_promises(definition, at(9, 5, 8), ["a", "b"]) == at(9, 4, 8)


def test_axes_without_a_promise_are_loose():
    assert list_loose_axes(define("c == 2 * b", "numbers are finite"), AXES) == ["a"]


def test_another_draw_comes_before_another_size():
    definition, drawn = define("b <= c"), iter([at(9, 5, 3), at(9, 4, 8), at(9, 2, 8)])
    assert draw_promised_workload(definition, lambda: next(drawn), AXES) == at(9, 4, 8)


def test_draws_that_all_fail_get_other_sizes_and_no_declared_ones():
    definition = define("a % 128 == 0")
    sizes = itertools.chain((130,), itertools.repeat(260))
    fitted = draw_promised_workload(definition, lambda: at(next(sizes), 128, 256), AXES)
    assert fitted == at(256, 128, 256), "the first one is the declared one"
    declared = draw_promised_workload(definition, lambda: at(130, 128, 256), AXES)
    assert declared == at(130, 128, 256)
    other = at(130, 128, 256).model_copy(update={"dtype": "bfloat16"})
    assert draw_promised_workload(definition, lambda: other, AXES).axes == at(128, 128, 256).axes


def test_other_sizes_are_few_enough_elements():
    definition, count = define("a % 128 == 0"), itertools.count(1)

    def shorten(workload: Workload) -> Workload | None:
        return None if definition.elements(workload) > 10_000 else workload

    fitted = draw_promised_workload(definition, lambda: at(130, 40 - next(count), 2), AXES, shorten=shorten)
    assert fitted == at(130, 32, 2), "no draw is small enough"
    assert next(count) == input_rules.SHAPE_TRIES + 1
    fitted = draw_promised_workload(definition, lambda: at(130, 28 - next(count), 2), AXES, shorten=shorten)
    assert fitted.axes == {"a": 128, "b": 18, "c": 2}


def test_a_size_beyond_any_tensor_is_moved_too():
    definition = define("b <= c")
    assert tuple(fit_to_promises(definition, at(9, 1 << 80, 3), AXES).axes.values())[1] < 1 << 80
