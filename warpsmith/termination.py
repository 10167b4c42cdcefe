"""SIGTERM and SIGHUP end a command as Ctrl-C does: what it started and its temporary files are cleaned up.

`docker stop`, Slurm, `timeout` and a closed terminal send them.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end a command in good order. SIGINT, which is Ctrl-C, does so by itself."""

INTERRUPTED: Final = 128 + signal.SIGINT
"""Exit code of a command that a person interrupted."""

_PATIENCE_SECONDS = 5.0

_received: list[int] = []
_times: list[float] = []
_terminals: list[int] = []


def interrupt_on_signals() -> None:
    """Have SIGTERM and SIGHUP raise KeyboardInterrupt, each unless it is ignored or handled already.

    A second one within `_PATIENCE_SECONDS` is ignored: `timeout` sends two, and it would break the clean-up off. A
    later one kills the process, whose clean-up hangs.
    """
    _terminals[:] = [descriptor for descriptor in (1, 2) if os.isatty(descriptor)]  # a lost one no longer says so
    for number in SIGNALS:
        if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` ignores SIGHUP
            signal.signal(number, _interrupt)


def note_signal(number: int) -> bool:
    """Note that a signal ends the command; return whether it is the first."""
    _received.append(number)
    if number == signal.SIGHUP:
        _leave_terminal()
    return len(_received) == 1


def exit_code() -> int:
    """Return 128 and the number of the signal that ended the command: 143 for SIGTERM, 130 for Ctrl-C."""
    return 128 + _received[0] if _received else INTERRUPTED


def signal_name() -> str:
    """Return the name of the signal that ended the command, `SIGTERM`; empty if none of SIGNALS did."""
    return signal.Signals(_received[0]).name if _received else ""


@contextmanager
def restored_handlers() -> Iterator[tuple[signal.Signals, ...]]:
    """Yield those of SIGNALS that are not ignored, and set their handlers as they were before at the end."""
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield tuple(number for number in SIGNALS if handlers[number] is not signal.SIG_IGN)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    first = note_signal(number)
    _times.append(time.monotonic())
    if first:
        raise KeyboardInterrupt
    if _times[-1] - _times[0] > _PATIENCE_SECONDS:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _leave_terminal() -> None:
    """Let output go nowhere where its terminal is gone: a write would fail in the middle of the clean-up."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in _terminals:
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
