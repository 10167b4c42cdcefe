"""Guards around new tensors."""

from __future__ import annotations

import ctypes

import pytest
import torch

from warpsmith.lab.workers.calls import fresh_memory
from warpsmith.lab.workers.calls.output_guards import guarded_memory


def write_byte(tensor, offset):
    ctypes.memset(tensor.data_ptr() + offset, 7, 1)


@pytest.mark.parametrize("content", ["poison", "numbers"])
@pytest.mark.parametrize("offset", [-1, 60, -4096, 60 + 4095])
def test_a_write_beyond_a_new_tensor_shows(content, offset):
    fills = fresh_memory.fill_new_memory(content, [])
    with pytest.raises(IndexError, match=r"beyond a tensor of shape \(3, 5\)"), fills:
        write_byte(torch.empty(3, 5), offset)


def test_tensors_of_an_interpreter_have_none(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    with fresh_memory.fill_new_memory("numbers", []):
        storage = torch.empty(3, 5)
    assert storage.untyped_storage().resizable()


@pytest.mark.parametrize("offset", [0, 59])
def test_a_write_inside_does_not(offset):
    with fresh_memory.fill_new_memory("numbers", []):
        write_byte(torch.empty(3, 5), offset)


def test_new_tensors_are_as_usual():
    with fresh_memory.fill_new_memory("poison", []):
        made = torch.empty(3, 5, dtype=torch.bfloat16)
        none, turned = torch.empty(0, 5), torch.empty_strided((2, 3), (1, 2))
    assert made.isnan().all()
    assert made.untyped_storage().nbytes() == 30
    assert made.is_contiguous()
    assert none.shape == (0, 5)
    assert turned.stride() == (1, 2)


def test_where_a_tensor_begins_is_drawn():
    with guarded_memory():
        places = {torch.empty(100).data_ptr() % 4096 for _ in range(40)}
    assert len(places) > 10
    assert not any(place % 64 for place in places)


def fail(tensor):
    write_byte(tensor, -1)
    raise ZeroDivisionError


def test_an_error_of_the_call_comes_first():
    with pytest.raises(ZeroDivisionError), guarded_memory():
        fail(torch.empty(4))
