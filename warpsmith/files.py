"""Atomic writes: temporary file, fsync, rename, fsync of the folder. A file is whole, or it is absent.

Every file that Warpsmith keeps is written through this module, so that a test can kill the process before and
after each system call of a whole run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from warpsmith.ownership import has_owner_mark, is_abandoned, owner_mark

TEMPORARY_PREFIX = ".tmp-"
"""Prefix of unfinished files and folders."""

NUMBERED = "[0-9][0-9][0-9]*"
"""Pattern of the names of numbered entries: three digits, or more from 1000 on."""

LOCK_WAIT_SECONDS = 1.0
"""Seconds to wait for a lock; a child that a killed process had just started holds its locks until it runs."""


def file_sha256(path: Path) -> str:
    """Return the hash of a file's content in hexadecimal."""
    import hashlib

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_file(path: Path, content: str | bytes) -> None:
    """Write `content` to `path` atomically; create the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(path)
    try:
        _write_synced(temporary, content)
        os.replace(temporary, path)  # noqa: PTH105 - this module names its system calls
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def hide_from_git(folder: Path, patterns: str = "*") -> None:
    """Write a `.gitignore` with one pattern per line into `folder`, unless it has one: a user's lines stay."""
    path = folder / ".gitignore"
    if not path.exists():
        write_file(path, f"{patterns}\n")


def append_line(path: Path, line: str) -> None:
    """Add a line to the end of a file, which need not exist, in one write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _opened(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as descriptor:
        os.write(descriptor, f"{line}\n".encode())
        os.fsync(descriptor)


def publish_folder(files: dict[str, str | bytes], folder: Path) -> None:
    """Create `folder` with these files atomically.

    Raises:
        FileExistsError: the folder exists already.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(folder)
    temporary.mkdir()
    try:
        for name, content in files.items():
            _write_synced(temporary / name, content)
        sync_folder(temporary)
        if folder.exists():
            raise FileExistsError(f"{folder} exists already")
        os.rename(temporary, folder)  # noqa: PTH104
    except BaseException:
        _remove_tree(temporary)
        raise
    sync_folder(folder.parent)


def replace_folder(contents: Mapping[str, bytes], folder: Path) -> None:
    """Create a folder with these files, at any depth, and put it in the place of an earlier one.

    It appears by one rename, after all files are flushed in one call. If the process dies between the two renames,
    the earlier folder is gone from its place and the new one is not there: never a half of either. If it is
    interrupted there, the earlier folder is put back.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(folder)
    temporary, earlier = temporary_path(folder), temporary_path(folder)
    try:
        for name, content in contents.items():
            path = temporary / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        os.sync()
        if folder.is_dir():
            os.rename(folder, earlier)  # noqa: PTH104
        os.rename(temporary, folder)  # noqa: PTH104
        _remove_tree(earlier)
    except BaseException:
        if earlier.exists() and not folder.exists():
            os.rename(earlier, folder)  # noqa: PTH104
        _remove_tree(temporary)
        raise
    sync_folder(folder.parent)


def next_number(folder: Path) -> str:
    """Return the number of the next entry of a folder whose entries begin with their number: `004`, `1000`."""
    numbers = [number_of(path.name) for path in folder.glob(NUMBERED)]
    return f"{max(numbers, default=0) + 1:03d}"


def number_of(name: str) -> int:
    """Return the number that a name begins with; -1 if it begins with none."""
    digits = re.match(r"\d+", name)
    return int(digits[0]) if digits else -1


def number_order(path: Path) -> tuple[tuple[int, str], ...]:
    """Return the key that sorts paths by their names, and names by the numbers that they begin with."""
    return tuple((number_of(part), part) for part in path.parts)


def move_path(source: Path, destination: Path) -> None:
    """Rename within the project so that the rename survives a power failure; create the folders above the
    destination."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    os.rename(source, destination)  # noqa: PTH104
    for folder in dict.fromkeys((destination.parent, source.parent)):
        sync_folder(folder)


def remove_folder(folder: Path) -> None:
    """Remove a folder atomically for observers, who could mistake a half removed one for one with unfinished
    work."""
    if folder.is_dir():
        doomed = temporary_path(folder)
        move_path(folder, doomed)
        _remove_tree(doomed)


def sweep_unfinished(folder: Path) -> list[Path]:
    """Remove the remains of unfinished writes directly in `folder`; return their paths.

    What a live process or another host is writing stays.
    """
    paths = sorted(folder.glob(f"{TEMPORARY_PREFIX}*")) if folder.is_dir() else []
    strays = [path for path in paths if is_abandoned(path) or not has_owner_mark(path.name)]
    for stray in strays:
        if stray.is_dir() and not stray.is_symlink():
            _remove_tree(stray)
        else:
            stray.unlink(missing_ok=True)
    return strays


def _remove_tree(folder: Path) -> None:
    import shutil  # hooks import this module at every tool use, and remove nothing

    shutil.rmtree(folder, ignore_errors=True)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` survive a power failure."""
    with _opened(folder, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
        os.fsync(descriptor)


def _remove_abandoned(folder: Path) -> None:
    """Remove what processes that died have left of `folder`; its parent may hold other people's files."""
    for stray in folder.parent.glob(f"{TEMPORARY_PREFIX}{folder.name}-*"):
        if is_abandoned(stray):
            _remove_tree(stray)


def temporary_path(path: Path) -> Path:
    """Return a path beside `path` for an unfinished file or folder; its name says whose it is."""
    return path.with_name(f"{TEMPORARY_PREFIX}{path.name}-{owner_mark()}-{os.urandom(4).hex()}")


def _write_synced(path: Path, content: str | bytes) -> None:
    data = memoryview(content.encode() if isinstance(content, str) else content)
    with _opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    """Open a file for system calls on its descriptor; an error of theirs names the file."""
    descriptor = os.open(path, flags, 0o644)
    try:
        yield descriptor
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
    finally:
        os.close(descriptor)
