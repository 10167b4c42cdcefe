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


ANY = LINEAR.replace('role="weight"', 'role="weight", layout="any"')
TURNED = ANY.replace('axes={"m": 8, "k": 32, "n": 64}', 'axes={"m": 8, "k": 48, "n": 48}')


def any_kernel(is_known: str) -> str:
    """A C++ solution of `ANY` that keeps its weight as long as `is_known` and its memory are the same."""
    before = f"""
  const int64_t down = w_.stride(0), right = w_.stride(1), span = 1 + (k - 1) * down + (n - 1) * right;
  static std::vector<float> memory;
  static int64_t step = 0;
  if (!({is_known} && {SAME_SHAPE} && memory.size() == size_t(span) && std::equal(w, w + span, memory.begin()))) {{
    memory.assign(w, w + span); rows = k; cols = n; step = down;
    kept.resize(k * n);
    for (int64_t i = 0; i < k; ++i) for (int64_t j = 0; j < n; ++j) kept[i * n + j] = w[i * down + j * right];
  }}"""
    return linear_kernel("true", before)


def call_on_exchanged(place):
    return views.call_on_exchanged(place.session, place.file.definition.workloads)


@pytest.mark.parametrize(("text", "where"), [(TURNED, "8x48x48"), (ANY, "8x8x8"), (LINEAR, "")])
def test_a_cache_with_the_strides_holds(seat, workshop, text, where):
    found = call_on_exchanged(seat(workshop.load("linear", text), any_kernel("step == down")))
    assert found == (f"w at {where}" if where else "")


def test_a_cache_without_the_strides_is_refused(seat, workshop):
    place = seat(workshop.load("linear", TURNED), any_kernel("true"))
    with pytest.raises(SideFailed, match="same memory with axes of w exchanged") as caught:
        call_on_exchanged(place)
    assert caught.value.status is Status.CACHED_RESULT


def test_exchanged_axes_lie_in_the_same_memory(seat, workshop):
    session = seat(workshop.load("linear", TURNED), any_kernel("true")).session()
    assert views.draw_exchanges(session, session.workload) == {"w": (0, 1)}
    session.exchange_axes({"w": (0, 1)})
    one, other = (session._views[slot]["w"] for slot in (0, 1))
    assert one.data_ptr() == other.data_ptr()
    assert other.stride() == (1, 48)
