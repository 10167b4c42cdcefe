"""Stopwatch: the wall time of each step of a run, so that a slow one is seen without a profiler."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Seconds by step, in the order in which the steps began."""

    def __init__(self) -> None:
        """Start with no step."""
        self.seconds: dict[str, float] = {}
        """Step to its wall time; a step that is repeated adds up."""

    @contextmanager
    def measure(self, step: str) -> Iterator[None]:
        """Add the time of the context to a step, also where it raises."""
        started = time.monotonic()
        self.seconds.setdefault(step, 0.0)
        try:
            yield
        finally:
            self.seconds[step] += time.monotonic() - started
