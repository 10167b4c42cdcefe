"""Journal: one file per action, numbered without gaps; the standing backups are computed from it alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import ValidationError

from warpsmith import files
from warpsmith.backups import blobs, user_files
from warpsmith.backups.models import Backup, FileEntry, JournalAction
from warpsmith.core.base import this_minute
from warpsmith.core.text import describe_error
from warpsmith.errors import Busy, CorruptRecord
from warpsmith.project import Project
from warpsmith.system_faults import describe_os_error

LOCK_SECONDS = 20.0
"""Seconds to wait for the action of another process; an action takes far less."""

Stacks = dict[str, list[Backup]]
"""Standing backups by file, the newest last."""


def journal_folder(project: Project) -> Path:
    """Return the folder of the actions."""
    return user_files.backups_folder(project) / "journal"


@contextmanager
def lock_backups(project: Project) -> Iterator[None]:
    """Lock the project's backups for an action; readers need no lock.

    Raises:
        Busy: another process holds them for too long.
        MachineLacks: a file could not be written.
    """
    home = user_files.backups_folder(project)
    try:
        _make(home)
        with FileLock(home / "lock", timeout=LOCK_SECONDS):
            for folder in (blobs.blobs_folder(project), journal_folder(project)):
                files.sweep_unfinished(folder)
            yield
    except Timeout:
        raise Busy(
            f"Another process has held {home} for {LOCK_SECONDS:.0f} s; try again when it has finished."
        ) from None
    except OSError as error:
        raise describe_os_error(error, at=home) from error


def append_action(project: Project, action: str, entries: Iterable[FileEntry], label: str = "") -> JournalAction:
    """Append an action to the journal; the caller holds the lock.

    Raises:
        CorruptRecord: the journal cannot be read.
    """
    number = len(read_journal(project)) + 1
    fields = {"number": number, "action": action, "at": this_minute(), "label": label, "files": tuple(entries)}
    draft = JournalAction.model_validate({**fields, "digest": "0" * 64})
    signed = draft.model_copy(update={"digest": _digest(draft)})
    files.write_file(journal_folder(project) / _name(signed), signed.model_dump_json(indent=2) + "\n")
    return signed


def read_journal(project: Project) -> tuple[JournalAction, ...]:
    """Read and check every action, in order.

    Raises:
        CorruptRecord: a file of the journal is missing, incomplete or was edited.
    """
    paths = sorted(
        journal_folder(project).glob("[0-9]*.json"), key=lambda path: (len(path.name.split("-")[0]), path.name)
    )
    return tuple(_action(path, number) for path, number in zip(paths, count(1), strict=False))


def backup_stacks(actions: Sequence[JournalAction]) -> Stacks:
    """Return the backups that stand after these actions."""
    by_path: Stacks = {}
    for action in actions:
        for entry in action.files:
            stack = by_path.setdefault(entry.path, [])
            if action.action == "backup":
                # A second backup shows that the edit after the first one is finished.
                if stack and stack[-1].sealed is None:
                    _seal(stack, entry)
                stack.append(_backup(action, entry))
            elif action.action == "seal":
                _seal(stack, entry)
            elif action.action != "aside":
                stack.pop()
    return {path: stack for path, stack in by_path.items() if stack}


def _seal(stack: list[Backup], entry: FileEntry) -> None:
    stack[-1] = stack[-1].model_copy(update={"sealed": entry.state})


def _backup(action: JournalAction, entry: FileEntry) -> Backup:
    return Backup(path=entry.path, number=action.number, label=action.label, made=action.at, original=entry.state)


def _action(path: Path, number: int) -> JournalAction:
    try:
        action = JournalAction.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        fault = describe_error(error) if isinstance(error, ValidationError) else str(error)
        raise _corrupt(path, f"cannot be read: {fault}") from error
    if action.digest != _digest(action):
        raise _corrupt(path, "does not have its digest: it was edited")
    if action.number != number or path.name != _name(action):
        raise _corrupt(path, f"is not number {number}: an action is missing or was renamed")
    return action


def _corrupt(path: Path, fault: str) -> CorruptRecord:
    return CorruptRecord(
        f"{path} {fault}; restore it, or move {path.parents[1]} away to start over (its blobs stay readable)."
    )


def _digest(action: JournalAction) -> str:
    return hashlib.sha256(action.model_dump_json(exclude={"digest"}).encode()).hexdigest()


def _name(action: JournalAction) -> str:
    return f"{action.number:04d}-{action.action}.json"


def _make(home: Path) -> None:
    if not home.is_dir():
        home.parent.mkdir(parents=True, exist_ok=True)
        home.mkdir(mode=0o700, exist_ok=True)  # The copy of a private file must be private.
    files.hide_from_git(home)  # Otherwise `git stash -u` and `git clean` would remove the backups.
