"""Floating-point modes of a caller that are not the usual ones: a version leaves them as they are."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from warpsmith.lab.workers.process_state import flushes_subnormals


@contextlib.contextmanager
def flush_subnormals(flush: int) -> Iterator[None]:
    """Let subnormal numbers count as zero on this thread; 0 leaves them alone.

    Raises:
        RuntimeError: they count otherwise after what ran meanwhile.
    """
    import torch

    if not (flush and torch.set_flush_denormal(True)):
        yield
        return
    try:
        before = flushes_subnormals()
        yield
        if flushes_subnormals() != before:
            raise RuntimeError("it changed whether its caller flushes subnormal numbers to zero")
    finally:
        torch.set_flush_denormal(False)
