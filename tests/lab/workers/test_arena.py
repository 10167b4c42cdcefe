from __future__ import annotations

import os
from itertools import pairwise, permutations
from math import prod

import pytest
import torch

from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.input_rules import GUARD_BYTES
from warpsmith.lab.workers import arena
from warpsmith.lab.workers.arena import ALIGNMENT, NAN_PATTERN, STRIDED, Arena, Layout, TensorPlacement


@pytest.fixture
def laid():
    layout = Layout()
    places = [layout.add((7, 3), "float32"), layout.add((), "int64"), layout.add((0,), "float16")]
    made = Arena(layout.size, "cpu")
    made.write_guards(layout)
    yield made, layout, places
    made.close()


def test_places_are_aligned_and_apart(laid):
    _, _, places = laid
    assert all(place.offset % ALIGNMENT == 0 for place in places)
    for one, other in pairwise(places):
        assert other.offset - (one.offset + one.nbytes) >= GUARD_BYTES


def test_writing_inside_leaves_the_guards(laid):
    made, layout, places = laid
    for place in places:
        arena.poison_tensor(place.view(made.memory))
    assert made.guards_are_intact(layout)
    assert places[0].view(made.memory).shape == (7, 3)
    assert places[0].view(made.memory).isnan().all()
    assert int(places[1].view(made.memory)) < -(2**62)


@pytest.mark.parametrize("past", [0, 17, GUARD_BYTES - 1])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_byte_before_or_after_a_place_is_seen(laid, which, past):
    made, layout, places = laid
    for position in (places[which].offset - 1 - past, places[which].offset + places[which].nbytes + past):
        kept = int(made.memory[position])
        made.memory[position] = 1
        assert not made.guards_are_intact(layout)
        made.memory[position] = kept
        assert made.guards_are_intact(layout)


def test_both_sides_see_the_same_bytes(laid):
    made, _, places = laid
    handle, (file,) = made.handle()
    other = arena.open_arena(handle, [os.dup(file)])
    places[0].view(other).fill_(4)
    assert (places[0].view(made.memory) == 4).all()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_poison_is_nan_in_every_floating_type(dtype):
    tensor = torch.zeros(5).to(getattr(torch, dtype))
    arena.poison_tensor(tensor)
    assert tensor.float().isnan().all()


@pytest.fixture
def alone(monkeypatch):
    """`alone(shape, how)`: an arena that is guarded around one place, padded by five elements, sliced by two."""
    monkeypatch.setattr(input_rules, "PADDINGS", (5,))
    monkeypatch.setattr(input_rules, "SLICE_STEPS", (2,))
    monkeypatch.setattr(arena, "_DENSE_SHARE", 1)
    monkeypatch.setattr(arena, "_GAP_SHARE", 1)
    monkeypatch.setattr(arena, "_SHIFTED_SHARE", 0)
    made = []

    def make(shape, how, dtype="float32"):
        layout = Layout()
        place = layout.add(shape, dtype, how)
        layout.add((5,), dtype)
        made.append(Arena(layout.size, "cpu"))
        made[-1].write_guards(layout)
        return made[-1], layout, place

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize(
    ("how", "shape", "strides"),
    [
        ("contiguous", (3, 4), (4, 1)),
        ("padded", (3, 4), (9, 1)),
        ("padded", (2, 3, 4), (32, 9, 1)),
        ("padded", (6,), (2,)),
        ("sliced", (3, 4), (8, 2)),
        ("transposed", (3, 4), (1, 3)),
        ("transposed", (6,), (2,)),
        ("misaligned", (3, 4), (4, 1)),
        ("padded", (), ()),
    ],
)
def test_layouts(alone, how, shape, strides):
    made, layout, place = alone(shape, how)
    view = place.view(made.memory)
    assert (view.shape, view.stride()) == (shape, strides)
    shift = (view.data_ptr() - made.memory.data_ptr()) % ALIGNMENT
    assert (shift > 0) == (how == "misaligned"), "only one layout is misaligned surely"
    assert not (view == 7).any()
    view.fill_(7)
    assert made.guards_are_intact(layout)
    assert int(made.memory.view(torch.float32).eq(7).sum()) == view.numel()


@pytest.mark.parametrize("how", ["contiguous", *STRIDED])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3)])
def test_nothing_can_lie_anywhere(alone, how, shape):
    made, layout, place = alone(shape, how)
    assert place.view(made.memory).shape == shape
    assert made.guards_are_intact(layout)


def test_memory_beyond_a_layout_is_cleared():
    made, layout = Arena(1 << 20, "cpu"), Layout()
    place = layout.add((1000,), "float32")
    try:
        made.memory.fill_(7)
        made.clear_beyond(layout)
        assert (made.memory[: layout.size] == 7).all()
        assert not made.memory[layout.size :].any()
        assert place.view(made.memory).shape == (1000,)
        whole = Layout()
        whole.add(((1 << 20) - 8192,), "uint8")
        made.clear_beyond(whole)
        assert (made.memory[: layout.size] == 7).all()
    finally:
        made.close()


def test_expanded_axes_are_one_slice_in_memory(alone):
    shape, seen = (2, 1, 3), set()
    for _ in range(60):
        made, _, place = alone(shape, "expanded")
        axes = place.expanded_axes
        assert all(place.view(made.memory).stride(axis) == 0 for axis in axes)
        assert place.nbytes == 4 * prod(size for axis, size in enumerate(shape) if axis not in axes)
        seen.add(axes)
    assert seen == {(0,), (2,), (0, 2)}
    assert alone((1, 1), "expanded")[2].expanded_axes == ()


def test_expanded_tensors_may_have_gaps():
    places = [Layout().add((2, 3, 4, 5), "float32", "expanded") for _ in range(3000)]
    rows = {(place.strides[2], place.strides[3]) for place in places if place.expanded_axes == (0, 1)}
    assert {(5, 1), *((5 + gap, 1) for gap in input_rules.PADDINGS)} < rows, "no gaps behind rows"
    planes = {place.strides[0] for place in places if place.expanded_axes == (1,)}
    assert {20, *(20 + gap for gap in input_rules.PADDINGS)} < planes, "no gaps behind planes"


def test_rows_of_a_framed_tensor_overlap():
    places = [Layout().add((3, 8), "float32", "framed") for _ in range(3000)]
    steps = (1, *input_rules.SLICE_STEPS)
    assert {place.strides for place in places} == {(hop * step, step) for hop in range(1, 8) for step in steps}
    assert all(place.hop * place.strides[1] == place.strides[0] for place in places)
    assert all(place.shares_elements for place in places)
    assert sum(place.strides == (1, 1) for place in places) > 300, "one element apart is rare"


def test_planes_of_frames_lie_apart_or_one_behind_the_other():
    places = [Layout().add((2, 3, 4), "float32", "framed") for _ in range(2000)]
    gaps = {place.strides[0] - 2 * place.strides[1] - 4 for place in places if place.strides[2] == 1}
    assert gaps == {0, *input_rules.PADDINGS}


@pytest.mark.parametrize("shape", [(), (7,), (3, 1), (2, 3, 1)])
def test_vectors_and_rows_of_one_element_are_never_framed(shape):
    place = Layout().add(shape, "float32", "framed")
    assert (place.strides, place.hop) == (None, 0)


@pytest.mark.parametrize("how", ["contiguous", *STRIDED])
@pytest.mark.parametrize("shape", [(3, 4), (2, 2), (1, 4), (2, 1, 3), (4, 2, 3, 2), (2, 0, 3)])
def test_rows_overlap_in_one_layout_alone(how, shape):
    for _ in range(300):
        place = Layout().add(shape, "int8", how)
        assert bool(place.hop) == (how == "framed" and shape[-2] > 1)


@pytest.mark.parametrize("is_padded", [True, False])
def test_writes_between_planes_and_elements_of_frames_are_seen(alone, monkeypatch, is_padded):
    """Frames are padded by five elements, or sliced by two; no other byte lies between them."""
    monkeypatch.setattr(arena, "_DENSE_SHARE", 0)
    monkeypatch.setattr(arena, "_PADDED_SHARE", is_padded)
    made, layout, place = alone((2, 3, 4), "framed", "uint8")
    plane = 2 * place.hop + 4
    assert place.strides == ((plane + 5, place.hop, 1) if is_padded else (2 * (plane + 5), 2 * place.hop, 2))
    step = place.strides[2]
    inside = {plane_start + step * each for plane_start in (0, place.strides[0]) for each in range(plane)}
    assert place.nbytes == max(inside) + 1
    place.view(made.memory).fill_(7)
    assert made.guards_are_intact(layout)
    for position in range(place.nbytes):
        made.memory[place.offset + position] ^= 1
        assert made.guards_are_intact(layout) == (position in inside), position
        made.memory[place.offset + position] ^= 1


def test_planes_of_a_transposed_tensor_may_have_gaps():
    strides = {Layout().add((2, 3, 4), "float32", "transposed").strides for _ in range(600)}
    assert {(3, 1, 6 + gap) for gap in input_rules.PADDINGS} < strides


@pytest.mark.parametrize(("dtype", "width"), [("float64", 8), ("float32", 4), ("uint8", 1)])
@pytest.mark.parametrize("how", ["misaligned", "padded", "sliced"])
def test_a_tensor_begins_at_any_multiple_of_its_elements(how, dtype, width):
    shifts = {Layout().add((3, 4), dtype, how).offset % ALIGNMENT % 64 for _ in range(8000)}
    assert shifts - {0} == set(range(width, 64, width))
    assert (0 in shifts) == (how != "misaligned"), "a misaligned tensor is aligned"


def test_rows_are_padded_by_one_of_several_widths():
    strides = {Layout().add((3, 4), "float32", "padded").strides for _ in range(60)}
    assert strides == {(4 + padding, 1) for padding in input_rules.PADDINGS}


def test_rows_are_sliced_by_one_of_several_steps():
    strides = {Layout().add((3, 4), "float32", "sliced").strides for _ in range(60)}
    assert strides == {(4 * step, step) for step in input_rules.SLICE_STEPS}


@pytest.mark.parametrize(
    ("how", "dense", "others"),
    [
        (
            "transposed",
            (1, 3),
            {(1, 3 + gap) for gap in input_rules.PADDINGS}
            | {(step, step * (3 + min(input_rules.PADDINGS))) for step in input_rules.SLICE_STEPS},
        ),
        ("expanded", (0, 1), {(0, step) for step in input_rules.SLICE_STEPS}),
        ("framed", (1, 1), {(step, step) for step in input_rules.SLICE_STEPS}),
    ],
)
def test_dense_layouts_may_have_gaps_where_a_tensor_is_small(monkeypatch, how, dense, others):
    def draw():
        strides = {Layout().add((3, 4), "float32", how).strides for _ in range(200)}
        return {each for each in strides if each and each[1] and (how != "framed" or each[0] == each[1])}

    assert draw() == {dense, *others}
    for shape in ((2, 500), (2, 3, 400), (400, 3, 2)):
        sizes = {
            widest: [Layout(widest=widest, begin_step=arena.PAGE) for _ in range(30)] for widest in (True, False)
        }
        for layout in (*sizes[True], *sizes[False]):
            layout.add(shape, "float32", how)
        assert min(each.size for each in sizes[True]) >= max(each.size for each in sizes[False])
    monkeypatch.setattr(input_rules, "GAP_ELEMENTS", 11)
    assert draw() == {dense}


def test_more_than_two_axes_come_in_any_other_order(alone):
    shape, seen = (2, 3, 4), set()
    for _ in range(60):
        made, _, place = alone(shape, "transposed")
        strides = place.view(made.memory).stride()
        order = sorted(range(3), key=lambda axis: -strides[axis])
        assert strides[order[2]] == 1
        assert strides[order[1]] == shape[order[2]]
        seen.add(tuple(order))
    assert seen == set(permutations(range(3))) - {(0, 1, 2)}


@pytest.mark.parametrize(("how", "past"), [("padded", 16), ("misaligned", -1), ("transposed", 48)])
def test_bytes_that_belong_to_no_element_are_guarded(alone, how, past):
    made, layout, place = alone((3, 4), how)
    made.memory[place.offset + past] += 1
    assert not made.guards_are_intact(layout)


def test_unknown_layouts_are_refused():
    with pytest.raises(ValueError, match=r"unknown layout `odd`; .*contiguous, padded"):
        Layout().add((3,), "float32", "odd")


def test_a_read_outside_can_be_made_to_show(laid):
    made, layout, places = laid
    made.write_guards(layout, NAN_PATTERN)
    assert made.guards_are_intact(layout)
    after = TensorPlacement(places[0].offset + places[0].nbytes, (2,), "float32").view(made.memory)
    assert after.isnan().all()
    made.memory[1] = 0xA5
    assert not made.guards_are_intact(layout)


@pytest.mark.parametrize("shape", [(8,), (3, 7), (), (0,)])
def test_all_places_are_poisoned_and_nothing_else(shape):
    layout = Layout()
    for _ in range(4):
        layout.add(shape, "float32")
        layout.add((5,), "int64")
    layout.add((5,), "int64")  # not evenly apart from the others
    made = Arena(layout.size, "cpu")
    made.write_guards(layout)
    for place in layout.places:
        place.view(made.memory).fill_(1)
    made.poison_all(layout)
    assert made.guards_are_intact(layout)
    for place in layout.places:
        view = place.view(made.memory)
        assert (view.isnan() if place.dtype == "float32" else view < -(2**62)).all()
    made.close()


def test_the_widest_layout_has_room_for_every_draw():
    def draw_size(*, widest: bool) -> int:
        layout = Layout(widest=widest)
        before = layout.size
        layout.add((12, 17, 8, 7), "float32", "padded")
        return layout.size - before

    sizes = {draw_size(widest=False) for _ in range(200)}
    assert len(sizes) > 2
    assert max(sizes) == draw_size(widest=True)


def test_gaps_lie_behind_rows_or_planes_or_both():
    strides = {Layout().add((2, 3, 8), "float32", "padded").strides for _ in range(200)}
    row = min(input_rules.PADDINGS) + 8
    assert {(3 * row, row, 1), (24 + row - 8, 8, 1), (3 * row + row - 8, row, 1)} < strides


@pytest.mark.parametrize("how", ["transposed", "expanded", "sliced", "framed"])
@pytest.mark.parametrize("shape", [(2, 300), (300, 1), (3, 5, 40), (50, 1, 7), (60, 2, 1, 3), (7,)])
def test_the_widest_layout_has_room_for_every_order(how, shape):
    def room(*, widest: bool) -> int:
        layout = Layout(widest=widest)
        layout.add(shape, "float32", how)
        return layout.room

    assert max(room(widest=False) for _ in range(60)) <= room(widest=True)


@pytest.mark.parametrize(
    ("how", "shape"), [("contiguous", (5000, 1)), ("transposed", (input_rules.GAP_ELEMENTS, 3))]
)
def test_a_thin_tensor_without_gaps_takes_no_more_room(how, shape):
    layout = Layout(widest=True)
    layout.add(shape, "float32", how)
    assert layout.room < 4 * prod(shape) + 5 * arena.PAGE


def test_the_first_tensor_begins_anywhere_in_a_page():
    begins = {Layout(begin_step=512).add((3,), "float32").offset % arena.PAGE for _ in range(200)}
    assert begins == set(range(0, arena.PAGE, 512))


def test_room_is_enough_wherever_the_first_tensor_begins():
    """Another layout of the same tensors fits in an arena that one of them gave the size."""

    def lay_out() -> Layout:
        layout = Layout()
        layout.add((3, 5), "float32")
        return layout

    room = lay_out().room
    sizes = {lay_out().size for _ in range(200)}
    assert len(sizes) > 1
    assert max(sizes) <= room
