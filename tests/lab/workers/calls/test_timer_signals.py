"""Signals of a timer while a call runs."""

from __future__ import annotations

import ctypes
import errno
import signal

import pytest

from warpsmith.lab.workers.calls.timer_signals import send_timer_signals


def wait(microseconds: int) -> int:
    """Wait once, and return the error number; a signal ends the wait."""
    library = ctypes.CDLL(None, use_errno=True)
    return ctypes.get_errno() if library.usleep(microseconds) else 0


@pytest.mark.parametrize(("interval", "error"), [(0.001, errno.EINTR), (0.0, 0)])
def test_a_wait_ends_at_a_signal(interval, error):
    handler, timer = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    with send_timer_signals(interval):
        assert wait(20_000) == error
    assert wait(5_000) == 0
    assert signal.getsignal(signal.SIGALRM) == handler
    assert signal.getitimer(signal.ITIMER_REAL) == pytest.approx(timer, abs=1)


def test_no_signal_outlives_a_call_that_fails():
    with pytest.raises(ValueError, match="seven"), send_timer_signals(0.001):
        raise ValueError("seven")
    assert wait(5_000) == 0
