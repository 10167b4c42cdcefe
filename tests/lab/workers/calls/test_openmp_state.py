from __future__ import annotations

import ctypes
import threading
from types import SimpleNamespace

import pytest
import torch
from stack_kit import stack_bytes

from warpsmith.lab.workers.calls import openmp_state


@pytest.fixture
def library():
    torch.ones(1 << 16).sum()
    return next(iter(openmp_state._loaded_libraries()))


def max_and_given(library):
    """Return how many threads a region asks for, and how many it gets."""
    numbers = set()
    body = openmp_state._BODY(lambda _: numbers.add(library.omp_get_thread_num()))
    library.GOMP_parallel(body, None, 0, 0)
    return library.omp_get_max_threads(), len(numbers)


def test_a_changed_setting_shows(library):
    before = openmp_state.read_settings()
    library.omp_set_dynamic(1)
    try:
        assert openmp_state.read_settings() != before
    finally:
        library.omp_set_dynamic(0)
    assert openmp_state.read_settings() == before


def test_a_changed_schedule_shows(library):
    before, kind, size = openmp_state.read_settings(), ctypes.c_int(), ctypes.c_int()
    library.omp_get_schedule(ctypes.byref(kind), ctypes.byref(size))
    library.omp_set_schedule(3, 7)
    try:
        assert openmp_state.read_settings() != before
    finally:
        library.omp_set_schedule(kind.value, size.value)


def test_modes_are_those_of_every_thread(library):
    library.omp_get_max_threads.restype = ctypes.c_int
    threads = {int(text) for text in openmp_state.read_modes(threading.get_ident)}
    assert threading.get_ident() in threads
    assert len(threads) >= library.omp_get_max_threads()


def test_a_caller_has_a_team_and_a_stack_of_its_own(library):
    library.omp_get_max_threads.restype = ctypes.c_int
    usual = library.omp_get_max_threads()
    own = threading.get_ident()
    assert openmp_state.call_as(library.omp_get_max_threads, team=usual + 13) == usual + 13
    assert openmp_state.call_as(library.omp_get_dynamic, team=usual, dynamic=1) == 1
    assert (openmp_state.call_as(library.omp_get_dynamic, team=usual), library.omp_get_dynamic()) == (0, 0)
    assert openmp_state.call_as(lambda: max_and_given(library), team=6, limit=5) == (6, 5)
    assert max_and_given(library)[1] == usual
    assert openmp_state.call_as(threading.get_ident) != own
    assert stack_bytes() > 1 << 20
    assert openmp_state.call_as(stack_bytes, stack=1 << 19) == 1 << 19
    assert library.omp_get_max_threads() == usual


def test_regions_within_regions_have_teams_for_a_call_alone(library):
    def count_inner():
        counts = []

        def inner(_):
            counts.append(library.omp_get_num_threads())

        body = openmp_state._BODY(lambda _: library.GOMP_parallel(openmp_state._BODY(inner), None, 0, 0))
        library.GOMP_parallel(body, None, 0, 0)
        return counts

    before = library.omp_get_max_active_levels()
    assert openmp_state.call_as(count_inner, team=4, levels=2) == [4] * 16
    assert openmp_state.call_as(count_inner, team=4) == [1] * 4
    assert library.omp_get_max_active_levels() == before


@pytest.mark.parametrize(("levels", "expected"), [(0, []), (2, [2, 1])])
def test_levels_that_a_call_sets_are_not_put_back_for_it(levels, expected, monkeypatch):
    written = []
    library = SimpleNamespace(
        _name="libomp", omp_set_num_threads=lambda _: None, omp_set_dynamic=lambda _: None,
        omp_get_max_active_levels=lambda: 1, omp_set_max_active_levels=written.append,
    )  # fmt: skip
    monkeypatch.setattr(openmp_state, "_loaded_libraries", lambda: [library])
    openmp_state.call_as(lambda: None, team=4, levels=levels)
    assert written == expected


def test_a_nested_call_is_in_a_region_of_every_library(library):
    def levels():
        return {each.omp_get_level() for each in openmp_state._loaded_libraries()}

    assert openmp_state.call_as(levels) == {0}
    assert openmp_state.call_as(levels, region=3, number=1) == {1}
    assert openmp_state.call_as(library.omp_get_num_threads, region=3) == 3
    numbers = [openmp_state.call_as(library.omp_get_thread_num, region=3, number=number) for number in range(3)]
    assert numbers == [0, 1, 2]


@pytest.mark.parametrize("region", [0, 3])
def test_what_a_call_raises_reaches_its_caller(library, region):
    def fail():
        raise ValueError("seven")

    with pytest.raises(ValueError, match="seven"):
        openmp_state.call_as(fail, region=region)
