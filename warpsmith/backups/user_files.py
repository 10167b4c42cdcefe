"""The user's files: the name that the journal knows them by, and how they are read and put."""

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
"""Bytes of the largest file that is taken: backups are for sources, not for data."""
_STAGED = "warpsmith-"
"""Tells our unfinished files in the user's folders from theirs."""


def backups_folder(project: Project) -> Path:
    """Where a project's backups are."""
    return project.root / ".warpsmith" / "backups"


@dataclass(frozen=True)
class Content:
    """A file's bytes and permission bits; `data` is None where there is no file."""

    data: bytes | None
    mode: int = 0

    @property
    def state(self) -> FileState:
        """As the journal has it."""
        if self.data is None:
            return FileState(sha256=None)
        return FileState(sha256=hashlib.sha256(self.data).hexdigest(), size=len(self.data), mode=self.mode)


def journal_name(project: Project, path: Path) -> str:
    """The journal's name of a file: relative to the root, or absolute outside of it.

    Links in the folders above are followed; one in the last place is not.

    Raises:
        Misuse: the name is not UTF-8, or the file is one of the backups.
    """
    try:
        place = path.parent.resolve() / path.name
    except RuntimeError as error:  # links in a circle, up to Python 3.12
        raise Misuse(f"{path} cannot be found: {error}.") from error
    root = project.root.resolve()
    if place.is_relative_to(backups_folder(project).resolve()):
        raise Misuse(f"{path} is part of the backups themselves; name a file of yours.")
    known = place.relative_to(root).as_posix() if place.is_relative_to(root) else place.as_posix()
    try:
        known.encode()
    except UnicodeEncodeError:
        raise Misuse(f"The name {known!r} is no UTF-8; rename the file first.") from None
    return known


def resolve_name(project: Project, known: str) -> Path:
    """The file that the journal calls `known`."""
    return project.root / known


def read_content(path: Path) -> Content:
    """What the file is now.

    Raises:
        Misuse: it is a folder, a link or a device, too large, or may not be read.
    """
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise Misuse(_refusal(path, found.st_mode))
        if found.st_size > LARGEST_BYTES:
            raise Misuse(
                f"{path} has {found.st_size / 2**20:.0f} MiB; backups take files up to {LARGEST_BYTES // 2**20} MiB."
            )
        return Content(path.read_bytes(), stat.S_IMODE(found.st_mode))
    except FileNotFoundError:
        return Content(None)
    except OSError as error:
        raise Misuse(f"{path} cannot be read: {error.strerror}.") from error


def _refusal(path: Path, mode: int) -> str:
    if stat.S_ISLNK(mode):
        return f"{path} is a symbolic link to {path.readlink()}; name the file itself."
    if stat.S_ISDIR(mode):
        return f"{path} is a folder; name the files in it."
    return f"{path} is no regular file; only those can be backed up."


def require_writable(path: Path) -> None:
    """Raise Misuse where the file could not be put back: its folder, or the nearest above, takes no files."""
    folder = path.parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise Misuse(f"{path} cannot be there: {folder} is no folder.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Misuse(f"{folder} may not be written, so {path.name} could not be put back; change its permissions.")


def write_content(path: Path, content: Content) -> None:
    """Make the file what `content` says, with its mode, whole or not at all; makes the folders above it."""
    if content.data is None:
        path.unlink(missing_ok=True)
        files.sync_folder(path.parent)
        return
    staged = path.with_name(f"{files.TEMPORARY_PREFIX}{_STAGED}{path.name}")
    for stray in path.parent.glob(f"{files.TEMPORARY_PREFIX}{glob.escape(staged.name)}-*"):
        stray.unlink()  # of a restore that was killed
    files.write_file(staged, content.data)
    try:
        staged.chmod(content.mode)
        os.replace(staged, path)  # noqa: PTH105 - the system call that the kill sweep counts
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    files.sync_folder(path.parent)
