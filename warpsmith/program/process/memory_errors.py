"""Errors that say that memory ran out, in the words of each allocator."""

from __future__ import annotations

import re

_OUT_OF_MEMORY = re.compile(r"out of ?memory|\bMemoryError\b|can(?:'t|not) allocate memory", re.I)
"""Words of CUDA's allocator, of Python, of PyTorch's allocator on a CPU, and of the system."""


def names_lack_of_memory(text: str) -> bool:
    """Return whether an error, written as its type and message, says that memory ran out."""
    return _OUT_OF_MEMORY.search(text) is not None
