"""State of OpenMP, whose threads and settings all kernels of a process share."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable
from pathlib import Path

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


def _loaded_libraries() -> list[ctypes.CDLL]:
    """Return the OpenMP libraries that are loaded, by their paths in the map of the process's memory."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    paths = {line.split(maxsplit=5)[5] for line in lines if line.count("/")}
    return [ctypes.CDLL(path) for path in sorted(paths) if Path(path).name.startswith(_LIBRARIES)]
