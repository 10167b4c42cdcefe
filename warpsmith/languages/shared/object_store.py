"""Compiled objects on disk, so that a user's processes compile each of them once.

Any failure, from a full disk to a truncated file, costs a compilation and is logged. No call of a version fails on
account of it.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from warpsmith import files

MAX_BYTES = 256 << 20
"""Size limit of a store: beyond it the objects that were read longest ago are deleted."""

_LOG = logging.getLogger(__name__)
_Result = TypeVar("_Result")
_Loaded = TypeVar("_Loaded")


def log_failure(action: Callable[[], _Result]) -> _Result | None:
    """Return the action's result, or None if it fails, which is logged."""
    try:
        return action()
    except Exception as error:
        _LOG.info("a compiled object is not cached, or not taken from the cache: %s", error, exc_info=True)
        return None


@dataclass(frozen=True)
class ObjectStore:
    """A folder of compiled objects; each file's name holds the key and the digest of its content."""

    folder: Path
    """Created by the first `write`."""
    suffix: str
    """Ending of the files: `.o`."""

    def load(self, key: str, load: Callable[[Path], _Loaded]) -> _Loaded | None:
        """Return the loaded object of a key, None if there is none; delete files that do not load."""
        for path in self._paths(key):
            loaded = log_failure(partial(self._load, path, load))
            if loaded is not None:
                return loaded
            log_failure(path.unlink)
        return None

    def write(self, key: str, content: bytes) -> None:
        """Store an object; raises OSError."""
        digest = hashlib.sha256(content).hexdigest()
        files.write_file(self.folder / f"{key}.{digest}{self.suffix}", content)
        left = MAX_BYTES
        paths = self.folder.glob(f"*{self.suffix}")
        for path in sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True):
            left -= path.stat().st_size
            if left < 0:
                path.unlink(missing_ok=True)

    def _paths(self, key: str) -> list[Path]:
        return log_failure(lambda: sorted(self.folder.glob(f"{key}.*{self.suffix}"))) or []

    def _load(self, path: Path, load: Callable[[Path], _Loaded]) -> _Loaded:
        """Load one file; raises ValueError if its content is not what was written, and what `load` raises."""
        if files.file_sha256(path) != path.name.split(".")[1]:
            raise ValueError(f"{path} has changed since it was written")
        loaded = load(path)
        with suppress(OSError):
            os.utime(path)
        return loaded


def file_stamp(file: Path | os.DirEntry[str]) -> str:
    """Return the name of a file, its size and its modification time; raises OSError if it does not exist."""
    status = file.stat()
    return f"{os.fspath(file)} {status.st_size} {status.st_mtime_ns}"


def tree_stamps(folder: str | Path) -> Iterator[str]:
    """Yield the stamps of all files in a folder and below it, in the order of their paths."""
    yield from map(file_stamp, sorted(_entries(folder), key=lambda entry: entry.path))


def _entries(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _entries(entry.path)
            else:
                yield entry
