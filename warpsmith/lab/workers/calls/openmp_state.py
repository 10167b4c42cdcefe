"""State of OpenMP, whose threads and settings all kernels of a process share, and calls that meet another one."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from warpsmith.lab.workers.calls import small_stack

_Result = TypeVar("_Result")

_LIBRARIES = ("libgomp", "libomp", "libiomp")
"""Beginnings of the file names of OpenMP's run-time libraries."""

_SETTINGS = ("omp_get_dynamic", "omp_get_max_active_levels", "omp_get_cancellation", "omp_get_proc_bind")
"""Functions without arguments that return a setting of the calling thread."""

_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def read_settings() -> list[tuple[int, ...]]:
    """Return the settings of this thread in each OpenMP library of the process, without repetition: dynamic
    number of threads, nested levels, cancellation, binding, and the schedule of loops."""
    values = set()
    for library in _loaded_libraries():
        kind, size = ctypes.c_int(), ctypes.c_int()
        library.omp_get_schedule(ctypes.byref(kind), ctypes.byref(size))
        values.add((*(int(library[name]()) for name in _SETTINGS), kind.value, size.value))
    return sorted(values)


def read_modes(read: Callable[[], Hashable]) -> list[str]:
    """Return what `read` returns in the threads of each OpenMP library's pool, without repetition."""
    values: set[Hashable] = set()
    body = _BODY(lambda _: values.add(read()))
    for library in _loaded_libraries():
        library.GOMP_parallel(body, None, 0, 0)
    return sorted(map(str, values))


def call_as(
    call: Callable[[], _Result],
    stack: int = 0,
    team: int = 0,
    region: int = 0,
    number: int = 0,
    dynamic: int = 0,
    limit: int = 0,
    levels: int = 0,
) -> _Result:
    """Return what a call returns in a thread of its own, which leaves no setting behind.

    Args:
        call: the call; what it raises is raised.
        stack: bytes of the thread's stack; 0 is the usual one.
        team: threads of its parallel regions; 0 is the usual number.
        region: threads of a parallel region of each OpenMP library that the call is made in; 0 is none.
        number: number of the region's thread that makes the call.
        dynamic: 1 if its regions may have fewer threads than a team, as many as the load of the machine allows.
        limit: threads that its regions may have at a time, of a team; 0 is no limit.
        levels: regions within each other that have a team; 0 is the usual number, mostly 1.
    """

    def call_in_thread() -> _Result:
        libraries = _loaded_libraries() if team else []
        for library in libraries:
            library.omp_set_num_threads(team)
            library.omp_set_dynamic(dynamic)
        nested = libraries if levels else []
        before = [library.omp_get_max_active_levels() for library in nested]
        try:
            for library in nested:
                if "gomp" in library._name:  # old ones ask for both; others warn of it
                    library.omp_set_nested(1)
                library.omp_set_max_active_levels(levels)
            return _call_in_regions(call, region, number, limit) if region or limit else call()
        finally:  # some libraries have one such number for all threads
            for library, number_before in zip(nested, before, strict=True):
                library.omp_set_max_active_levels(number_before)

    if stack:
        return small_stack.call_on_stack(call_in_thread, stack)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call_in_thread).result()


def _call_in_regions(call: Callable[[], _Result], threads: int, number: int, limit: int) -> _Result:
    """Return what a call returns in a thread of a region of each library, one in another, or in one of teams that
    sets a limit."""
    result: Future[_Result] = Future()

    def call_once() -> None:
        try:
            result.set_result(call())
        except Exception as error:  # nothing passes through the library
            result.set_exception(error)

    def call_in_region(library: ctypes.CDLL, inner: Callable[[], None]) -> None:
        def call_in_thread(_: object) -> None:
            if library.omp_get_thread_num() == min(number, library.omp_get_num_threads() - 1):
                inner()

        if limit:
            library.GOMP_teams_reg(_BODY(lambda _: inner()), None, 1, limit, 0)
        else:
            library.GOMP_parallel(_BODY(call_in_thread), None, threads, 0)

    outer = call_once
    for library in _loaded_libraries():
        outer = functools.partial(call_in_region, library, outer)
    outer()
    return result.result()


def _loaded_libraries() -> list[ctypes.CDLL]:
    """Return the OpenMP libraries that are loaded, by their paths in the map of the process's memory."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    paths = {line.split(maxsplit=5)[5] for line in lines if line.count("/")}
    return [ctypes.CDLL(path) for path in sorted(paths) if Path(path).name.startswith(_LIBRARIES)]
