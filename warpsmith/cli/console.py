"""How commands speak: data to stdout, people are told on stderr."""

from __future__ import annotations

import io
import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic import BaseModel
    from rich.console import Console


def stderr() -> Console:
    """The console for people."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def stdout() -> Console:
    """The console for data that is a table; plain, and no line padded at its end, where stdout is no terminal."""
    from rich.console import Console

    file = None if sys.stdout.isatty() else cast("IO[str]", _Trimmed())
    return Console(highlight=False, soft_wrap=True, file=file)


class _Trimmed(io.TextIOBase):
    """stdout without the spaces at the ends of lines."""

    def write(self, text: str) -> int:
        sys.stdout.write(re.sub(" +$", "", text, flags=re.MULTILINE))
        return len(text)

    def flush(self) -> None:
        sys.stdout.flush()


def out(text: str) -> None:
    """One text to stdout."""
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")


def tell(text: str) -> None:
    """One line to stderr, for people, whatever its width and whatever rich would read as markup in it."""
    sys.stderr.write(f"{text}\n")


def near(path: Path) -> str:
    """A path as it is typed in the folder at hand."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def out_json(model: BaseModel) -> None:
    """A model to stdout, as it stands on disk."""
    out(model.model_dump_json(indent=2))


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """A line on stderr that says what is going on; nothing where stderr is no terminal."""
    console = stderr()
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("") as status:
        yield lambda text: status.update(text)


def log(text: str) -> None:
    """One line on stderr where `progress` shows nothing."""
    if not stderr().is_terminal:
        tell(text)


def taken_up(path: Path, done: str, why: str) -> None:
    """Say that a command goes on with the unfinished record at `path`, or why it begins anew; empty: neither."""
    if why:
        tell(f"{path}: {why}; begun anew.")
    elif done:
        tell(f"{path}: going on after {done}.")
