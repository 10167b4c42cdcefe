"""Views: the same elements in another shape get the result of that shape."""

from __future__ import annotations

import pytest
from lab_samples import HONEST, LINEAR, SAME_SHAPE, SAME_WEIGHT, SQUARE, kernel, linear_kernel

from warpsmith.core.evaluation import Status
from warpsmith.lab.gate.calls import views
from warpsmith.lab.machine import system
from warpsmith.lab.workers.side import SideFailed

pytestmark = pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")

LONGEST = {"m": 16, "k": 64, "n": 96}
KEPT = f"{SAME_SHAPE} && {SAME_WEIGHT}"


def call_on_views(place):
    return views.call_on_views(place.session, place.file.definition.workloads)


def test_a_cache_with_the_shape_holds(seat, workshop):
    assert call_on_views(seat(workshop.load("linear", LINEAR), linear_kernel(KEPT))).startswith(
        "x, w at small and "
    )


def test_a_cache_without_the_shape_is_refused(seat, workshop):
    place = seat(workshop.load("linear", LINEAR), linear_kernel(SAME_WEIGHT))
    with pytest.raises(SideFailed, match="elements of x, w in another shape") as caught:
        call_on_views(place)
    assert caught.value.status is Status.CACHED_RESULT


def test_other_shapes_have_the_same_elements(seat, workshop):
    session = seat(workshop.load("linear", LINEAR), linear_kernel(KEPT)).session()
    options = views.draw_reshaped(session, LONGEST)
    assert options[0].names == ("x", "w")
    for workload, names in options:
        m, k, n = workload.axes.values()
        assert ("w" in names) == (k * n == 32 * 64 and k != 32)
        assert ("x" in names) == (m * k == 8 * 32 and k != 32)
        assert all(size <= LONGEST[axis] for axis, size in workload.axes.items())


@pytest.mark.parametrize(
    ("changed", "by"),
    [
        ('flops="2', 'constraints=("x and w are symmetric",), flops="2'),
        ('role="weight"', 'role="weight", distribution="sorted"'),
    ],
)
def test_inputs_that_promise_more_stay(seat, workshop, changed, by):
    file = workshop.load("linear", LINEAR.replace(changed, by))
    session = seat(file, linear_kernel(KEPT)).session()
    assert "w" not in {name for option in views.draw_reshaped(session, LONGEST) for name in option.names}


def test_shapes_without_room_are_left_out(seat, workshop, monkeypatch):
    session = seat(workshop.load("linear", LINEAR), linear_kernel(KEPT)).session()
    assert not session.has_room(session.workload.model_copy(update={"axes": {"m": 10**4, "k": 64, "n": 96}}))
    monkeypatch.setattr(session, "has_room", lambda _: False)
    assert views.draw_reshaped(session, LONGEST) == []


def test_a_vector_has_one_shape(seat, workshop):
    assert call_on_views(seat(workshop.load("square", SQUARE), kernel(HONEST))) == ""
