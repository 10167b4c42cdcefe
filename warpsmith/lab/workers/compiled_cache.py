"""Caches of compiled kernels, Triton's and cuTile's, kept for the next worker that loads the same source.

A candidate wrote these files and may have put anything in them, so nothing is parsed here and no link is followed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from warpsmith.lab.sandbox import walls

FOLDERS = (walls.cache_folder("TRITON_CACHE_DIR"), walls.cache_folder("CUDA_TILE_CACHE_DIR"))
"""Names of a worker's caches below its scratch folder; each has one folder per kernel."""

MOST_SOURCES = 256
"""Sources whose compiled kernels outlive a process. Chosen."""

_MOST_BYTES = 256 << 20
_PLACEHOLDER_PATH = b"/where/a/worker/has/its/cache"


def save_compiled(scratch: Path, store: Path) -> None:
    """Copy new kernels out of the caches in the scratch folder of a worker that no longer runs."""
    for name in FOLDERS:
        _copy_new_folders(scratch / name, store / name, bytes(scratch / name), _PLACEHOLDER_PATH)
    with contextlib.suppress(OSError):  # it kept nothing
        os.utime(store)  # `prune_compiled` goes by it


def restore_compiled(store: Path, scratch: Path) -> None:
    """Copy saved kernels into the caches of a worker that has not loaded anything yet."""
    for name in FOLDERS:
        _copy_new_folders(store / name, scratch / name, _PLACEHOLDER_PATH, bytes(scratch / name))


def prune_compiled(root: Path, most: int = MOST_SOURCES) -> None:
    """Remove the kernels of all but the `most` sources that were compiled last; `root` has a folder for each."""
    with contextlib.suppress(OSError):  # another process may remove them too
        folders = sorted(root.iterdir(), key=lambda folder: folder.lstat().st_mtime, reverse=True)
        for folder in folders[most:]:
            shutil.rmtree(folder, ignore_errors=True)


def _copy_new_folders(source: Path, target: Path, old: bytes, new: bytes) -> None:
    """Copy the folders that `target` lacks, with their plain files, and replace the path `old` by `new` in file
    lists."""
    remaining = _MOST_BYTES
    for folder in _entries(source):
        copy = target / folder.name
        if folder.is_dir(follow_symlinks=False) and not copy.exists():
            with contextlib.suppress(OSError):  # A folder that cannot be read is not copied.
                remaining -= _copy_folder(folder.path, copy, remaining)
                _rewrite_file_lists(copy, old, new)


def _copy_folder(folder: str, target: Path, most: int) -> int:
    """Copy all plain files of a folder, or none if they exceed `most` bytes; return the bytes copied."""
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
    """List the entries of a folder; the list is empty if it is no folder or cannot be read."""
    if not os.path.islink(folder):  # noqa: PTH114 - `folder` may be a directory entry
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            return list(entries)
    return []


def _rewrite_file_lists(folder: Path, old: bytes, new: bytes) -> None:
    """Replace the path `old` by `new` in the file lists of a copied folder.

    Triton lists a kernel's files by absolute path. If a list names another path, Triton compiles the kernel again.
    """
    for file_list in folder.glob("__grp__*"):
        with contextlib.suppress(OSError):
            file_list.write_bytes(file_list.read_bytes().replace(old, new))
