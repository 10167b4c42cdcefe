from __future__ import annotations

import os
from itertools import pairwise

import pytest
import torch

from warpsmith.lab import arena
from warpsmith.lab.arena import ALIGNMENT, GUARD, Arena, Layout


@pytest.fixture
def laid():
    layout = Layout()
    places = [layout.add((7, 3), "float32"), layout.add((), "int64"), layout.add((0,), "float16")]
    made = Arena(layout.size, "cpu")
    made.guard(layout)
    yield made, layout, places
    made.close()


def test_places_are_aligned_and_apart(laid):
    _, _, places = laid
    assert all(place.offset % ALIGNMENT == 0 for place in places)
    for one, other in pairwise(places):
        assert other.offset - (one.offset + one.nbytes) >= GUARD


def test_writing_inside_leaves_the_guards(laid):
    made, layout, places = laid
    for place in places:
        arena.poison(place.view(made.memory))
    assert made.intact(layout)
    assert places[0].view(made.memory).shape == (7, 3)
    assert places[0].view(made.memory).isnan().all()
    assert int(places[1].view(made.memory)) < -(2**62)


@pytest.mark.parametrize("past", [0, 17, GUARD - 1])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_byte_before_or_after_a_place_is_seen(laid, which, past):
    made, layout, places = laid
    for position in (places[which].offset - 1 - past, places[which].offset + places[which].nbytes + past):
        kept = int(made.memory[position])
        made.memory[position] = 1
        assert not made.intact(layout)
        made.memory[position] = kept
        assert made.intact(layout)


def test_both_sides_see_the_same_bytes(laid):
    made, _, places = laid
    handle, (file,) = made.handle()
    other = arena.open_handle(handle, [os.dup(file)])
    places[0].view(other).fill_(4)
    assert (places[0].view(made.memory) == 4).all()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_poison_is_nan_in_every_floating_type(dtype):
    tensor = torch.zeros(5).to(getattr(torch, dtype))
    arena.poison(tensor)
    assert tensor.float().isnan().all()
