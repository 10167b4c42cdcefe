"""Stages of a step: where a judgement's time goes, without a profiler."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

Stage = Literal["inputs", "reference", "version", "grading"]
"""Drawing and writing inputs; float64 reference and its other orders; waiting for a worker; grading results."""


class _Clock:
    """Seconds by stage. A stage inside another one interrupts it, so that no second counts twice."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._open: list[str] = []
        self._since = 0.0

    def begin(self, stage: str) -> None:
        self._add()
        self._open.append(stage)

    def end(self) -> None:
        self._add()
        self._open.pop()

    def _add(self) -> None:
        reading = time.monotonic()
        if self._open:
            self.seconds[self._open[-1]] = self.seconds.get(self._open[-1], 0.0) + reading - self._since
        self._since = reading


_clock: ContextVar[_Clock | None] = ContextVar("clock", default=None)


@contextmanager
def collect_stages() -> Iterator[dict[str, float]]:
    """Yield the seconds of each stage within the context, which grow as stages end."""
    clock = _Clock()
    token = _clock.set(clock)
    try:
        yield clock.seconds
    finally:
        _clock.reset(token)


@contextmanager
def stage(name: Stage) -> Iterator[None]:
    """Count the time of the context as that of a stage, if somebody collects it."""
    clock = _clock.get()
    if clock is None:
        yield
        return
    clock.begin(name)
    try:
        yield
    finally:
        clock.end()
