"""Signals of a timer, as a program that is sampled or has time limits gets them: they end a thread's waits."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def send_timer_signals(interval: float) -> Iterator[None]:
    """Send a signal to this process at each interval; this is its first thread.

    Args:
        interval: seconds between two signals; 0 sends none.
    """
    if not interval:
        yield
        return
    handler = signal.signal(signal.SIGALRM, lambda *_: None)
    timer = signal.setitimer(signal.ITIMER_REAL, interval, interval)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)
