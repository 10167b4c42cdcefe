"""The user's files: their names in the journal, and how they are read and written."""

from __future__ import annotations

import glob
import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from warpsmith import files
from warpsmith.backups.models import FileState
from warpsmith.errors import Misuse
from warpsmith.project import Project

LARGEST_BYTES = 64 * 2**20
"""Size of the largest file that can be backed up in bytes; backups are for sources, not for data."""
_STAGED = "warpsmith-"
"""Marker of our unfinished files in the user's folders."""


def backups_folder(project: Project) -> Path:
    """Return the folder of a project's backups."""
    return project.scratch / "backups"


@dataclass(frozen=True)
class Content:
    """Bytes and permission bits of a file; `data` is None if there is no file."""

    data: bytes | None
    mode: int = 0

    @property
    def state(self) -> FileState:
        """State as the journal stores it."""
        if self.data is None:
            return FileState(sha256=None)
        return FileState(sha256=hashlib.sha256(self.data).hexdigest(), size=len(self.data), mode=self.mode)


def journal_name(project: Project, path: Path) -> str:
    """Return the name of a file in the journal: relative to the root, or absolute outside of it.

    Links in the folders above are followed; a link in the last component is not.

    Raises:
        Misuse: the name is not UTF-8, or the file belongs to the backups.
    """
    try:
        location = path.parent.resolve() / path.name
    except RuntimeError as error:  # A circle of links, up to Python 3.12.
        raise Misuse(f"{path} cannot be found: {error}.") from error
    root = project.root.resolve()
    if location.is_relative_to(backups_folder(project).resolve()):
        raise Misuse(f"{path} is part of the backups; name one of your own files.")
    name = location.relative_to(root).as_posix() if location.is_relative_to(root) else location.as_posix()
    try:
        name.encode()
    except UnicodeEncodeError:
        raise Misuse(f"The name {name!r} is not UTF-8; rename the file first.") from None
    return name


def resolve_name(project: Project, name: str) -> Path:
    """Return the path of the file that the journal calls `name`."""
    return project.root / name


def read_content(path: Path) -> Content:
    """Read the current content of a file.

    Raises:
        Misuse: it is a folder, a link or a device, is too large, or may not be read.
    """
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise Misuse(_refusal(path, status.st_mode))
        if status.st_size > LARGEST_BYTES:
            raise Misuse(
                f"{path} has {status.st_size / 2**20:.0f} MiB;"
                f" backups take files up to {LARGEST_BYTES // 2**20} MiB."
            )
        return Content(path.read_bytes(), stat.S_IMODE(status.st_mode))
    except FileNotFoundError:
        return Content(None)
    except OSError as error:
        raise Misuse(f"{path} cannot be read: {error.strerror}.") from error


def _refusal(path: Path, mode: int) -> str:
    if stat.S_ISLNK(mode):
        return f"{path} is a symbolic link to {path.readlink()}; name the file itself."
    if stat.S_ISDIR(mode):
        return f"{path} is a folder; name the files in it."
    return f"{path} is not a regular file; only regular files can be backed up."


def require_writable(path: Path) -> None:
    """Check that the file could be restored.

    Raises:
        Misuse: its folder, or the nearest existing one above, is not writable.
    """
    folder = path.parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise Misuse(f"{path} cannot exist: {folder} is not a folder.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Misuse(f"{folder} is not writable, so {path.name} could not be restored; change the permissions.")


def write_content(path: Path, content: Content) -> None:
    """Write `content` to the file with its mode, atomically; create the folders above it."""
    if content.data is None:
        path.unlink(missing_ok=True)
        files.sync_folder(path.parent)
        return
    staged = path.with_name(f"{files.TEMPORARY_PREFIX}{_STAGED}{path.name}")
    for stray in path.parent.glob(f"{files.TEMPORARY_PREFIX}{glob.escape(staged.name)}-*"):
        stray.unlink()  # Left by a restore that was killed.
    files.write_file(staged, content.data)
    try:
        staged.chmod(content.mode)
        os.replace(staged, path)  # noqa: PTH105 - the kill sweep counts this system call
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    files.sync_folder(path.parent)
