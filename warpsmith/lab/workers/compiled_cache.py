"""What Triton compiled of a source, kept for the next worker that loads the same source.

A candidate wrote it, and any file may be anything: nothing is read out of it here, and no link is followed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from warpsmith.lab.sandbox import walls

FOLDER = walls.cache_folder("TRITON_CACHE_DIR")
"""Where a worker's cache lies below its scratch folder; a folder a kernel is in it."""

_MOST_BYTES = 256 << 20
_PLACEHOLDER_PATH = b"/where/a/worker/has/its/cache"


def save_compiled(cache: Path, kept: Path) -> None:
    """Copy what is not kept yet out of the cache of a worker that does not run any more."""
    _copy_new_folders(cache, kept, bytes(cache), _PLACEHOLDER_PATH)


def restore_compiled(kept: Path, cache: Path) -> None:
    """Put what is kept into the cache of a worker that has loaded nothing yet."""
    _copy_new_folders(kept, cache, _PLACEHOLDER_PATH, bytes(cache))


def _copy_new_folders(source: Path, target: Path, was: bytes, now: bytes) -> None:
    """Copy the folders that are new there, with their plain files; a cache that `was` somewhere is named `now`."""
    left = _MOST_BYTES
    for folder in _entries(source):
        new = target / folder.name
        if folder.is_dir(follow_symlinks=False) and not new.exists():
            with contextlib.suppress(OSError):  # what may not be read stays
                left -= _copy_folder(folder.path, new, left)
                _rewrite_file_lists(new, was, now)


def _copy_folder(folder: str, target: Path, most: int) -> int:
    """All of its plain files, or none; their bytes."""
    files = [file for file in _entries(folder) if file.is_file(follow_symlinks=False)]
    size = sum(file.stat(follow_symlinks=False).st_size for file in files)
    if size > most:
        return 0
    target.mkdir(parents=True)
    try:
        for file in files:
            shutil.copy(file, target / file.name)
    except OSError:
        shutil.rmtree(target)
        raise
    return size


def _entries(folder: Path | str) -> list[os.DirEntry[str]]:
    """What lies in a folder; nothing where it is none, or may not be read."""
    if not os.path.islink(folder):  # noqa: PTH114 - also of entries
        with contextlib.suppress(OSError), os.scandir(folder) as found:
            return list(found)
    return []


def _rewrite_file_lists(folder: Path, was: bytes, now: bytes) -> None:
    """Triton lists a kernel's files by their whole paths: have the lists of a copied folder name their new place.
    Where a list still names another place its kernel is compiled again."""
    for listed in folder.glob("__grp__*"):
        with contextlib.suppress(OSError):
            listed.write_bytes(listed.read_bytes().replace(was, now))
