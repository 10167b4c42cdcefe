from __future__ import annotations

import ctypes
import threading

import pytest
import torch

from warpsmith.lab.workers import openmp_state


@pytest.fixture
def library():
    torch.ones(1 << 16).sum()
    return next(iter(openmp_state._loaded_libraries()))


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
