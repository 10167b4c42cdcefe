"""A progress bar on stderr, drawn only when a line is told, so that no thread runs while times are taken."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from warpsmith.core.text import ProgressLine

if TYPE_CHECKING:
    from rich.console import Console

_LEAST_SHARE, _LEAST_SECONDS = 0.1, 3.0
"""Share and seconds before which the time that is left is not computed from the share."""


class ProgressBar:
    """A bar, the time that is left, and the current part, on one line of a terminal.

    The estimate comes from the duration of an earlier run if there is one, else from the share that is done.
    """

    def __init__(self, console: Console, expected: float | None = None) -> None:
        """Prepare the bar; `expected` is the duration of an earlier run in seconds."""
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        self._expected, self._share = expected, 0.0
        self._started = self._operation_started = time.monotonic()
        text = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1))
        left = TextColumn("{task.fields[left]}", markup=False, table_column=Column(no_wrap=True))
        self._progress = Progress(
            BarColumn(20), left, text, console=console, auto_refresh=False, transient=True, expand=True
        )
        self._task = self._progress.add_task("", total=1.0, left="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def tell(self, text: str) -> None:
        """Draw the bar with a line of progress."""
        moment = time.monotonic()
        if isinstance(text, ProgressLine):
            if text.share < self._share:  # the next of several operations
                self._operation_started = moment
            self._share = text.share
        if self._expected is None:
            share, left = self._share, time_left_by_share(self._share, moment - self._operation_started)
        else:
            elapsed = moment - self._started
            share, left = min(elapsed / self._expected, 0.99), time_left_by_record(self._expected, elapsed)
        self._progress.update(self._task, description=" ".join(text.split()), completed=share, left=left)
        self._progress.refresh()


def time_left_by_share(share: float, elapsed: float) -> str:
    """Describe the time that is left if all parts take as long as those that are done; empty if too few are."""
    if share < _LEAST_SHARE or elapsed < _LEAST_SECONDS:
        return ""
    return f"about {clock_text(elapsed * (1 - share) / share)} left"


def time_left_by_record(expected: float, elapsed: float) -> str:
    """Describe the time that is left if this run takes as long as an earlier one."""
    if elapsed > expected:
        return f"longer than the {clock_text(expected)} of the last run"
    return f"about {clock_text(expected - elapsed)} left"


def clock_text(seconds: float) -> str:
    """Format a duration as minutes and seconds: `2:05`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
