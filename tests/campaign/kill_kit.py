"""Kills a process at the n-th of its system calls that change files."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CALLS = ("write", "replace", "rename", "fsync", "unlink", "rmdir")
REAL_WRITE = os.write


@dataclass
class Trigger:
    """Kills this process at the n-th call; n = 0 only counts."""

    n: int
    after: bool
    calls: int = 0

    def wrap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            mine = self.calls == self.n
            if mine and not self.after:
                os.kill(os.getpid(), signal.SIGKILL)
            result = call(*arguments, **options)
            if mine:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return wrapped

    def arm(self) -> None:
        for name in CALLS:
            setattr(os, name, self.wrap(getattr(os, name)))
        # Killed after it began, git goes on alone while the next process mends: the hardest case.
        subprocess.Popen.__init__ = self.wrap(subprocess.Popen.__init__)  # type: ignore[method-assign]


@dataclass
class Snapshots:
    """Calls `save(n)` before the n-th call, when the disk is as a kill there would leave it."""

    save: Callable[[int], None]
    calls: int = 0
    saving: bool = False

    def wrap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            if not self.saving:
                self.calls += 1
                self.saving = True
                self.save(self.calls)
                self.saving = False
            return call(*arguments, **options)

        return wrapped

    arm = Trigger.arm


def in_child(work: Callable[[Callable[[str], None]], None]) -> tuple[int, list[str]]:
    """Run `work` in a fork; its status (negative: the signal) and the lines it said before it died."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            gc.disable()  # it would visit, and so copy, all that the parent imported
            os.close(reading)
            work(lambda line: void(REAL_WRITE(writing, f"{line}\n".encode())))
            code = 0
        except BaseException:
            REAL_WRITE(writing, traceback.format_exc().encode())
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as file:
        lines = file.read().splitlines()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), lines


def void(_: object) -> None:
    return None
