"""Temporary folders, and the sweep of what killed commands left: those, and unfinished files of the project."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from warpsmith.files import TEMPORARY_PREFIX
from warpsmith.ownership import is_abandoned, owner_mark
from warpsmith.project import Project

PREFIX = "warpsmith-"
"""Prefix of every folder of ours in the folder for temporary files."""

_NOT_OURS = frozenset({".git", "repo"})
"""Folders that the sweep leaves alone: git's, and the checkouts of other repositories below `.warpsmith`."""


class TemporaryFolder(tempfile.TemporaryDirectory[str]):
    """Temporary folder, removed at the end of its context, or by a later command if its process is killed."""

    def __init__(self, purpose: str = "", *, below: Path | None = None) -> None:
        super().__init__(prefix="-".join(filter(None, (PREFIX[:-1], purpose, f"{owner_mark()}-"))), dir=below)


def sweep_abandoned(project: Project | None) -> list[Path]:
    """Remove what dead commands of this user on this host left; return the paths. Links are never followed.

    Args:
        project: project whose unfinished files are removed too; None: only folders for temporary files are.
    """
    strays = [path for path in _list_folder(Path(tempfile.gettempdir())) if path.name.startswith(PREFIX)]
    if project is not None:
        for root in (project.devlog, project.kernels, project.knowledge, project.scratch):
            strays += _unfinished(root)
    removed = []
    for path in filter(is_abandoned, strays):
        with suppress(OSError):  # another command removes it too
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
            removed.append(path)
    return removed


def _unfinished(folder: Path) -> Iterator[Path]:
    """Yield the unfinished files and folders below a folder."""
    for path in _list_folder(folder):
        if path.name.startswith(TEMPORARY_PREFIX):
            yield path
        elif path.name not in _NOT_OURS and path.is_dir() and not path.is_symlink():
            yield from _unfinished(path)


def _list_folder(folder: Path) -> list[Path]:
    """List what lies in a folder; nothing of a link, or of a folder that does not read."""
    with suppress(OSError):
        if not folder.is_symlink():
            with os.scandir(folder) as entries:
                return [Path(entry.path) for entry in entries]
    return []
