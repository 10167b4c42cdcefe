"""In the program's process: seconds of a step in which a loop ran, by Python's own trace function."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from warpsmith.program.lines.frames import SourceLoop, list_frames
from warpsmith.program.process.profile_steps import Steps


class LoopTimer:
    """Timer of loops, calls from them included; time in a loop inside another counts for the inner one."""

    def __init__(self, loops: Iterable[SourceLoop], synchronize: Callable[[], None]) -> None:
        """Time these loops; `synchronize` waits for the device."""
        self._loops: dict[str, list[SourceLoop]] = {}
        for loop in sorted(
            loops, key=lambda loop: loop.first - loop.last
        ):  # an outer loop begins before its inner
            self._loops.setdefault(loop.file, []).append(loop)
        self._synchronize = synchronize
        self._inside: dict[SourceLoop, set[int]] = {}
        self._active: list[SourceLoop] = []
        self._since = 0.0
        self._seconds: dict[SourceLoop, float] = {}

    def time_step(self) -> Steps[tuple[float, dict[SourceLoop, float]]]:
        """Time one step; return its seconds, and the seconds in which each loop ran.

        A script's step goes on in frames that run already: they are traced, too.
        """
        self._inside = {loop: set() for loops in self._loops.values() for loop in loops}
        self._seconds = dict.fromkeys(self._inside, 0.0)
        self._active = []
        self._synchronize()
        before = sys.gettrace()
        begin = time.perf_counter()
        running = [frame for frame in list_frames() if frame.f_code.co_filename in self._loops]
        sys.settrace(self._trace_call)
        for frame in running:
            frame.f_trace = self._trace_line
        try:
            yield
        finally:
            sys.settrace(before)
            for frame in running:
                frame.f_trace = None
        self._synchronize()
        return time.perf_counter() - begin, dict(self._seconds)

    def _trace_call(self, frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401 - a trace function
        if frame.f_code.co_filename not in self._loops:
            return None
        self._note(frame, event)
        return self._trace_line

    def _trace_line(self, frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401 - a trace function
        self._note(frame, event)
        return self._trace_line

    def _note(self, frame: FrameType, event: str) -> None:
        """Note that a frame is now at a line, or returns."""
        line, key = frame.f_lineno or 0, id(frame)  # code without lines has None
        for loop in self._loops[frame.f_code.co_filename]:
            frames = self._inside[loop]
            if event != "return" and loop.first <= line <= loop.last:
                if not frames:
                    self._count_time()
                    self._active.append(loop)
                frames.add(key)
            elif key in frames:
                frames.remove(key)
                if not frames:
                    self._count_time()
                    self._active.remove(loop)

    def _count_time(self) -> None:
        """Count the time since the last change for the innermost loop that was running."""
        clock = time.perf_counter()
        if self._active:
            self._seconds[self._active[-1]] += clock - self._since
        self._since = clock
