"""Rows of what a feature derived from files, kept until a file changes; an SQLite file in the user's state folder.

It spares reading thousands of records to answer one question about them, and holds no truth: without it every
answer is the same, only later. A row counts while each file has the size, the times and the inode that it had
before it was read. The time of the last change of an inode (ctime) cannot be set back by whoever edits a file.
Files that changed within the last seconds get no row, since a clock may be coarser than two edits.

The file lies next to the key that signs records, so a project that cannot be written has one too. Rows are not
signed: whoever can write there can sign a record as well.
"""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from warpsmith.user_state import user_state_folder

LAYOUT = 1
"""Version of the tables; a file of another version is removed."""

_SETTLED_SECONDS = 2
"""Age of the last change from which a row is written: no file system has coarser times."""

_WAIT_SECONDS = 1.0
"""Seconds to wait for another process that writes; after that the rows are not kept."""

_MARSHAL = 2
"""Format of the bytes that are hashed, ten times as fast as text; later ones depend on references to a value."""

_TABLE = (
    "CREATE TABLE IF NOT EXISTS derived"
    " (kind TEXT, key TEXT, state TEXT, value TEXT, PRIMARY KEY (kind, key)) WITHOUT ROWID"
)

_PACKAGE = Path(__file__).resolve().parent


class FilesState(NamedTuple):
    """State of files: their names, sizes, times and inodes."""

    sha256: str
    """Hash over the state."""
    settled: bool
    """True if the last change is old enough that a later one shows."""


def read_rows(root: Path, kind: str) -> dict[str, tuple[str, str]]:
    """Return the rows of a kind, state and value by key; none if there is no index or it does not read."""
    try:
        path = rows_path(root)
        if not path.exists():
            return {}
    except (OSError, RuntimeError):  # no folder of the user's own can be read
        return {}
    try:
        with contextlib.closing(_connect(path)) as connection:
            rows = connection.execute("SELECT key, state, value FROM derived WHERE kind = ?", (kind,))
            return {key: (state, value) for key, state, value in rows}
    except sqlite3.OperationalError as error:
        if "decode" in str(error):  # a value is no text: somebody else has written it
            _remove(path)
        return {}
    except sqlite3.DatabaseError:
        _remove(path)
        return {}


def write_rows(root: Path, kind: str, rows: Mapping[str, tuple[str, str]]) -> None:
    """Write rows of a kind, all or none; none where that is not possible."""
    if not rows:
        return
    values = [(kind, key, state, value) for key, (state, value) in rows.items() if _is_text(key + value)]
    try:
        path = rows_path(root)
        for folder in (user_state_folder(), path.parent):  # the key lies in the first
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.closing(_connect(path)) as connection, connection:
            connection.execute("BEGIN IMMEDIATE")  # waits for another writer; a later upgrade of a lock would not
            connection.execute(_TABLE)
            connection.execute(f"PRAGMA user_version = {LAYOUT}")
            connection.executemany("INSERT OR REPLACE INTO derived VALUES (?, ?, ?, ?)", values)
    except (
        sqlite3.OperationalError,
        OSError,
        RuntimeError,
    ):  # another process writes, or the disk is full
        return
    except sqlite3.DatabaseError:
        _remove(path)


def rows_path(root: Path) -> Path:
    """Return the file of a project's index."""
    name = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:16]
    return user_state_folder() / "index" / f"{name}.sqlite"


@cache
def code_state() -> str:
    """Return a hash over names, sizes and times of Warpsmith's own files: other code may derive other answers."""
    total = hashlib.sha256()
    for folder, folders, names in os.walk(_PACKAGE):
        folders[:] = sorted(name for name in folders if name not in ("__pycache__", "shipped"))
        for name in sorted(names):
            stat = os.stat(f"{folder}/{name}")  # noqa: PTH116 - thousands of paths
            total.update(f"{folder}/{name} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return total.hexdigest()


def tree_state(folders: Iterable[Path], *others: str) -> FilesState:
    """Return the state of all files below the folders; `others` are further inputs of what follows from them."""
    paths = []
    for folder in folders:
        for above, names, files in os.walk(folder):
            names[:] = sorted(name for name in names if name != "__pycache__")
            paths += [f"{above}/{name}" for name in sorted(files)]
    return files_state(paths, *others)


def files_state(paths: Sequence[str], *others: str, folder: int | None = None) -> FilesState:
    """Return the state of files; `others` are further inputs of what follows from them.

    Args:
        paths: the files; one that is not there counts as such.
        others: further inputs.
        folder: open folder that the paths are relative to: a short path takes less time than a long one.
    """
    times, facts = [0], [0]
    for path in paths:
        try:
            stat = os.stat(path, dir_fd=folder)
        except OSError:
            times += (0, 0)
            facts += (0, 0)
            continue
        times += (stat.st_mtime_ns, stat.st_ctime_ns)
        facts += (stat.st_size, stat.st_ino)
    inputs = marshal.dumps((code_state(), others, list(paths), times, facts), _MARSHAL)
    return FilesState(
        hashlib.sha256(inputs).hexdigest(), settled=max(times) / 1e9 < time.time() - _SETTLED_SECONDS
    )


def _connect(path: Path) -> sqlite3.Connection:
    """Open the index; raises sqlite3.DatabaseError if the file is none, or of another version."""
    connection = sqlite3.connect(path, timeout=_WAIT_SECONDS)
    try:
        (layout,) = connection.execute("PRAGMA user_version").fetchone()
        if layout not in (0, LAYOUT):
            raise sqlite3.DatabaseError(f"The index has layout {layout}.")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _is_text(text: str) -> bool:
    """Return False for a text with a path in it that is not UTF-8: SQLite takes none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
