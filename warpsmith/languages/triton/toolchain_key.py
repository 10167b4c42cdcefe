"""Cache of Triton's key of its own toolchain: a hash over its sources and its compiler, by which it names kernels.

The compiler is a library of some hundred megabytes, and every process that launches a kernel hashes all of it.
That takes 0.5 s on the host of an H200, as long as everything else that a first call waits for.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from warpsmith import files
from warpsmith.languages.shared.object_store import file_stamp

_HASHED = ("_C", "backends", "compiler", "language", "runtime")
"""Folders of Triton whose files the key is made from."""


def compute_key() -> None:
    """Compute the key now, and import what the first launch would: forked processes inherit both."""
    with suppress(ImportError):
        importlib.import_module("triton.experimental.gluon")
    if compute := _key_function():
        compute()


def cache_key_in(folder: Path) -> None:
    """Make this process read the key from `folder`, where an earlier process wrote it for the very same files."""
    compute = _key_function()
    if compute is None:
        return
    path = folder / f"{_toolchain_stamp()}.triton-key"
    try:
        key = path.read_text(encoding="ascii")
    except (OSError, ValueError):
        key = compute()
        with suppress(OSError):  # a read-only folder costs the half second again
            files.write_file(path, key.encode())
    _cache_module().triton_key = lambda: key


def _key_function() -> Callable[[], str] | None:
    """Return Triton's function for it, by its name since Triton 3; None if this release has no such function."""
    return getattr(_cache_module(), "triton_key", None)


def _cache_module() -> Any:  # noqa: ANN401 - Triton publishes no types
    return importlib.import_module("triton.runtime.cache")


def _toolchain_stamp() -> str:
    """Return a hash over names, sizes and modification times of Triton's files."""
    root = Path(_cache_module().__file__).parents[1]
    return hashlib.sha256("\n".join(_file_stamps(root)).encode()).hexdigest()


def _file_stamps(root: Path) -> Iterator[str]:
    for name in _HASHED:
        yield from (file_stamp(path) for path in sorted((root / name).rglob("*")) if path.suffix in (".py", ".so"))
