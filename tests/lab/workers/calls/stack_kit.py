"""Bytes of the calling thread's stack."""

from __future__ import annotations

import ctypes


def stack_bytes() -> int:
    """Return how large the stack of the calling thread is."""
    library = ctypes.CDLL(None)
    library.pthread_self.restype = ctypes.c_ulong
    attributes, size = ctypes.create_string_buffer(256), ctypes.c_size_t()
    assert library.pthread_getattr_np(ctypes.c_ulong(library.pthread_self()), attributes) == 0
    assert library.pthread_attr_getstacksize(attributes, ctypes.byref(size)) == 0
    library.pthread_attr_destroy(attributes)
    return size.value
