"""Output of commands: data to stdout, messages for people to stderr."""

from __future__ import annotations

import io
import re
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from warpsmith.core.text import NoticeLine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import BaseModel
    from rich.console import Console

    from warpsmith.cli.durations import Duration
    from warpsmith.core.text import Tell


def stderr() -> Console:
    """Return the console for people."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def stdout() -> Console:
    """Return the console for tables of data; if stdout is not a terminal, plain and without trailing spaces."""
    from rich.console import Console

    file = None if sys.stdout.isatty() else cast("IO[str]", _TrimmedStdout())
    return Console(highlight=False, soft_wrap=True, file=file)


class _TrimmedStdout(io.TextIOBase):
    """Stream to stdout that removes spaces at the ends of lines."""

    def write(self, text: str) -> int:
        sys.stdout.write(re.sub(" +$", "", text, flags=re.MULTILINE))
        return len(text)

    def flush(self) -> None:
        sys.stdout.flush()


def out(text: str) -> None:
    """Write a text to stdout."""
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")


def out_line(text: str) -> None:
    """Write a line to stdout at once."""
    out(text)
    sys.stdout.flush()


def out_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write rows under their columns' names, as wide as any content: nothing is cut for an agent with a pipe."""
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    for row in (columns, *rows):
        out("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def tell(text: str) -> None:
    """Write a line for people to stderr as it is, without wrapping or markup."""
    sys.stderr.write(f"{text}\n")


def path_from_here(path: Path) -> str:
    """Return a path relative to the current folder if it is inside."""
    folder = Path.cwd()
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)


def out_json(model: BaseModel) -> None:
    """Write a model to stdout as JSON."""
    out(model.model_dump_json(indent=2))


def out_line_json(model: BaseModel) -> None:
    """Write a model to stdout as one line of JSON, at once."""
    out(model.model_dump_json())
    sys.stdout.flush()


@contextmanager
def progress(duration: Duration | None = None, *, phases: bool = False) -> Iterator[Tell]:
    """Yield a callback that takes lines of progress and shows a bar; without a terminal it shows notices only.

    Args:
        duration: estimates the time that is left, and keeps the wall time of this run if it is told as complete.
        phases: the lines are few and minutes apart, and are written without a terminal too.
    """
    started, share = time.monotonic(), 0.0

    def note(text: str) -> None:
        nonlocal share
        share = getattr(text, "share", share)

    def note_and_tell(text: str) -> None:
        note(text)
        if phases or isinstance(text, NoticeLine):
            tell(text)

    console = stderr()
    if not console.is_terminal:
        yield note_and_tell
    else:
        from warpsmith.cli.progress_bar import ProgressBar

        with ProgressBar(console, duration.seconds() if duration else None) as bar:

            def show(text: str) -> None:
                note(text)
                bar.tell(text)

            yield show
    if duration and share == 1:
        duration.save(time.monotonic() - started)


def tell_without_terminal(text: str) -> None:
    """Write a line to stderr if it is not a terminal, where `progress` shows nothing."""
    if not stderr().is_terminal:
        tell(text)


def tell_continuation(path: Path, finished: str, obstacle: str) -> None:
    """Tell that a command continues the unfinished record at `path`, or why not; silent if both are empty."""
    if obstacle:
        tell(f"{path}: {obstacle}; starting again.")
    elif finished:
        tell(f"{path}: continuing after {finished}.")
