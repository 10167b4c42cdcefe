"""Output of commands: data to stdout, messages for people to stderr."""

from __future__ import annotations

import io
import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel
    from rich.console import Console

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


@contextmanager
def progress() -> Iterator[Tell]:
    """Yield a callback that shows progress on one line of stderr; it does nothing if stderr is not a terminal."""
    console = stderr()
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("") as status:
        yield lambda text: status.update(text)


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
