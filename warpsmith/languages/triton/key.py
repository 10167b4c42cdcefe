"""Triton's key of itself, by which it names the kernels that it keeps: a hash over its sources and its compiler.

The compiler is a library of some hundred megabytes, and every process that launches a kernel reads all of it: half
a second on the host of an H200, as long as all else that a first call waits for.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from warpsmith import files

_HASHED = ("_C", "backends", "compiler", "language", "runtime")
"""Folders of Triton whose files the key is made from."""


def make() -> None:
    """Make it now, and import what the first launch would: processes that are forked from this one have both."""
    with suppress(ImportError):
        importlib.import_module("triton.experimental.gluon")
    if key := _key():
        key()


def remember(folder: Path) -> None:
    """Have this process take it from `folder`, where an earlier one left it for the very same files."""
    made = _key()
    if made is None:
        return
    kept = folder / f"{_stamp()}.triton-key"
    try:
        key = kept.read_text(encoding="ascii")
    except (OSError, ValueError):
        key = made()
        with suppress(OSError):  # a folder that cannot be written to costs the half second again
            files.write(kept, key.encode())
    _cache().triton_key = lambda: key


def _key() -> Callable[[], str] | None:
    """What makes it, by the name that it has had since Triton 3; None: this release names it otherwise."""
    return getattr(_cache(), "triton_key", None)


def _cache() -> Any:  # noqa: ANN401 - Triton publishes no types
    return importlib.import_module("triton.runtime.cache")


def _stamp() -> str:
    """Names, sizes and times of change of Triton's files."""
    root = Path(_cache().__file__).parents[1]
    return hashlib.sha256(repr([str(root), *_seen(root)]).encode()).hexdigest()


def _seen(root: Path) -> Iterator[tuple[str, int, int]]:
    for name in _HASHED:
        for path in sorted((root / name).rglob("*")):
            if path.suffix in (".py", ".so"):
                found = path.stat()
                yield path.relative_to(root).as_posix(), found.st_size, found.st_mtime_ns
