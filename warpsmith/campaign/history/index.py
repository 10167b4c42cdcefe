"""Index of closed rounds: what a feature derived from a campaign's rounds, until a file of one of them changes.

It spares reading and checking thousands of records to answer one question about them, and holds no truth: without
it every answer is the same, only later. A row counts while each record, each strike and the manifest have the
size, the times and the inode that they had before they were read and checked. The time of the last change of an
inode (ctime) cannot be set back by whoever edits a file. Files that changed within the last seconds get no row,
since a clock may be coarser than two edits. `warpsmith evidence check` reads the files in any case.

The index lies in the user's state folder, next to the key that signs records, so a project that cannot be written
has one too. Rows are not signed: whoever can write there can sign a record as well.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from pydantic import ValidationError

from warpsmith.campaign.history.manifests import MANIFEST, SEAL
from warpsmith.campaign.history.records import STRUCK
from warpsmith.core.base import Model
from warpsmith.errors import CorruptRecord
from warpsmith.ledger.store import DIGEST, QUARANTINE, RECORD
from warpsmith.user_state import user_state_folder

LAYOUT = 1
"""Version of the tables; a file of another version is removed."""

_SETTLED_SECONDS = 2
"""Age of the last change from which a row is written: no file system has coarser times."""

_WAIT_SECONDS = 1.0
"""Seconds to wait for another process that writes; after that the rows are not kept."""

_TABLE = (
    "CREATE TABLE IF NOT EXISTS derived"
    " (kind TEXT, key TEXT, state TEXT, value TEXT, PRIMARY KEY (kind, key)) WITHOUT ROWID"
)

_PACKAGE = Path(__file__).resolve().parents[2]


T = TypeVar("T", bound=Model)


class FilesState(NamedTuple):
    """State of files: their names, sizes, times and inodes."""

    sha256: str
    """Hash over the state."""
    settled: bool
    """True if the last change is old enough that a later one shows."""


def derive_from_rounds(
    root: Path, folders: Sequence[Path], kind: str, model: type[T], derive: Callable[[Path], T]
) -> list[T | None]:
    """Return what `derive` gives for each campaign, from the index where none of its rounds has changed.

    None stands for a campaign with a corrupt record or manifest; its own commands report it.

    Args:
        root: root of the project.
        folders: folders of its campaigns.
        kind: name of the question, which is always asked with the same model and function.
        model: model of an answer.
        derive: function of the manifest and the closed rounds in a folder, and of nothing else; it reads and
            checks them, and may raise CorruptRecord.
    """
    states = [_round_state(folder) for folder in folders]
    rows = read_rows(root, kind)
    answers: list[T | None] = []
    fresh: dict[str, tuple[str, str]] = {}
    for folder, state in zip(folders, states, strict=True):
        answer = _parse_row(rows.get(str(folder)), state.sha256, model)
        if answer is None:
            with contextlib.suppress(CorruptRecord):
                answer = derive(folder)
                if state.settled:
                    fresh[str(folder)] = (state.sha256, answer.model_dump_json())
        answers.append(answer)
    write_rows(root, kind, fresh)
    return answers


def read_rows(root: Path, kind: str) -> dict[str, tuple[str, str]]:
    """Return the rows of a kind, state and value by key; none if there is no index or it does not read."""
    try:
        path = round_index_path(root)
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
        path = round_index_path(root)
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


def round_index_path(root: Path) -> Path:
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


def _parse_row(row: tuple[str, str] | None, state: str, model: type[T]) -> T | None:
    if row is None or row[0] != state:
        return None
    try:
        return model.model_validate_json(row[1])
    except ValidationError:
        return None


def tree_state(folders: Iterable[Path], *others: str) -> FilesState:
    """Return the state of all files below the folders; `others` are further inputs of what follows from them."""
    paths = []
    for folder in folders:
        for above, names, files in os.walk(folder):
            names[:] = sorted(name for name in names if name != "__pycache__")
            paths += [f"{above}/{name}" for name in sorted(files)]
    return _state_of(paths, *others)


def _round_state(folder: Path) -> FilesState:
    """Return the state of the files behind a campaign's closed rounds."""
    rounds = f"{folder}/rounds"
    try:
        names = sorted(name for name in os.listdir(rounds) if name.isdigit())  # noqa: PTH208
    except OSError:
        names = []
    paths = [f"{folder}/{MANIFEST}", f"{folder}/{SEAL}", f"{rounds}/{QUARANTINE}"]
    for name in names:
        paths += (f"{rounds}/{name}/{RECORD}", f"{rounds}/{name}/{DIGEST}")
        if os.access(strike := f"{rounds}/{name}/{STRUCK}", os.F_OK):
            paths.append(strike)
    return _state_of(paths, *names)


def _state_of(paths: Sequence[str], *others: str) -> FilesState:
    facts, changed = [], 0
    for path in paths:
        try:
            stat = os.stat(path)  # noqa: PTH116
        except OSError:
            facts.append(0)
            continue
        changed = max(changed, stat.st_ctime_ns, stat.st_mtime_ns)
        facts += (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino)
    inputs = repr((code_state(), others, paths, facts))
    return FilesState(
        hashlib.sha256(inputs.encode(errors="surrogateescape")).hexdigest(),
        settled=changed / 1e9 < time.time() - _SETTLED_SECONDS,
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
