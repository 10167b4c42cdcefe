"""Threads with a small stack, whose end every call meets that needs more.

Below the stack of an ordinary thread a single page is kept free, which a large frame steps over: what lies beyond
may be a buffer of the process, or the stack of a thread that has ended, and nothing shows.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Final, TypeVar

_Result = TypeVar("_Result")

GUARD: Final = 64 << 20
"""Bytes below the stack that nothing may touch: more than a frame of a main thread may have."""

_ATTRIBUTE_BYTES: Final = 256
"""Room for a `pthread_attr_t`, which has 56 bytes in glibc and 64 on AArch64."""
_BODY = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


def call_on_stack(call: Callable[[], _Result], size: int) -> _Result:
    """Return what a call returns in a thread whose stack has `size` bytes; what it raises is raised.

    A call that needs more ends the process by SIGSEGV.
    """
    result: Future[_Result] = Future()

    def run(_: object) -> None:
        try:
            result.set_result(call())
        except BaseException as error:  # nothing passes through the library
            result.set_exception(error)

    body, thread = _BODY(run), ctypes.c_ulong()
    attributes = ctypes.create_string_buffer(_ATTRIBUTE_BYTES)
    library = ctypes.CDLL(None)
    library.pthread_join.argtypes = (ctypes.c_ulong, ctypes.c_void_p)
    with _guarded_memory(size) as address:
        _check(library.pthread_attr_init(attributes))
        _check(library.pthread_attr_setstack(attributes, ctypes.c_void_p(address), ctypes.c_size_t(size)))
        _check(library.pthread_create(ctypes.byref(thread), attributes, body, None))
        _check(library.pthread_join(thread, None))
        _check(library.pthread_attr_destroy(attributes))
    return result.result()


@contextmanager
def _guarded_memory(size: int) -> Iterator[int]:
    """Map `size` bytes above a guard, and yield their address."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
    library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    address = library.mmap(None, GUARD + size, 0, flags, -1, 0)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    try:
        if library.mprotect(address + GUARD, size, mmap.PROT_READ | mmap.PROT_WRITE):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        yield address + GUARD
    finally:
        library.munmap(address, GUARD + size)


def _check(error: int) -> None:
    """Raise what a function of threads says is wrong."""
    if error:
        raise OSError(error, os.strerror(error))
