"""The journal: one file an action, numbered without gaps; what stands is computed from it alone."""

from __future__ import annotations

import errno
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
from warpsmith.core.problem import describe_error
from warpsmith.errors import Busy, CorruptRecord, MachineLacks
from warpsmith.project import Project

LOCK_SECONDS = 20.0
"""Seconds that an action waits for another process's; one takes far less."""

Stacks = dict[str, list[Backup]]
"""The backups that stand by file, the newest last."""


def journal_folder(project: Project) -> Path:
    """Where the actions are."""
    return user_files.backups_folder(project) / "journal"


@contextmanager
def lock_backups(project: Project) -> Iterator[None]:
    """Hold the project's backups for an action; readers need not.

    Raises:
        Busy: another process holds them for too long.
        MachineLacks: something could not be written.
    """
    home = user_files.backups_folder(project)
    try:
        _make(home)
        with FileLock(home / "lock", timeout=LOCK_SECONDS):
            for place in (blobs.blobs_folder(project), journal_folder(project)):
                files.sweep_unfinished(place)
            yield
    except Timeout:
        raise Busy(
            f"Another process has held {home} for {LOCK_SECONDS:.0f} s; try again when it is done."
        ) from None
    except OSError as error:
        raise MachineLacks(_describe_write_error(home, error)) from error


def append_action(project: Project, action: str, entries: Iterable[FileEntry], label: str = "") -> JournalAction:
    """Put the next action into the journal; the caller holds it.

    Raises:
        CorruptRecord: the journal does not read.
    """
    number = len(read_journal(project)) + 1
    fields = {"number": number, "action": action, "at": this_minute(), "label": label, "files": tuple(entries)}
    draft = JournalAction.model_validate({**fields, "digest": "0" * 64})
    made = draft.model_copy(update={"digest": _digest(draft)})
    files.write_file(journal_folder(project) / _name(made), made.model_dump_json(indent=2) + "\n")
    return made


def read_journal(project: Project) -> tuple[JournalAction, ...]:
    """Every action in order, checked.

    Raises:
        CorruptRecord: a file of the journal is gone, torn or was edited.
    """
    found = sorted(
        journal_folder(project).glob("[0-9]*.json"), key=lambda path: (len(path.name.split("-")[0]), path.name)
    )
    return tuple(_action(path, number) for path, number in zip(found, count(1), strict=False))


def backup_stacks(actions: Sequence[JournalAction]) -> Stacks:
    """What stands after these actions."""
    standing: Stacks = {}
    for action in actions:
        for entry in action.files:
            stack = standing.setdefault(entry.path, [])
            if action.action == "backup":
                # A backup on top of another says that the edit below is finished.
                if stack and stack[-1].sealed is None:
                    _seal(stack, entry)
                stack.append(_backup(action, entry))
            elif action.action == "seal":
                _seal(stack, entry)
            elif action.action != "aside":
                stack.pop()
    return {path: stack for path, stack in standing.items() if stack}


def _seal(stack: list[Backup], entry: FileEntry) -> None:
    stack[-1] = stack[-1].model_copy(update={"sealed": entry.state})


def _backup(action: JournalAction, entry: FileEntry) -> Backup:
    return Backup(path=entry.path, number=action.number, label=action.label, made=action.at, original=entry.state)


def _action(path: Path, number: int) -> JournalAction:
    try:
        action = JournalAction.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        what = describe_error(error) if isinstance(error, ValidationError) else str(error)
        raise _corrupt(path, f"does not read: {what}") from error
    if action.digest != _digest(action):
        raise _corrupt(path, "does not have its digest: it was edited")
    if action.number != number or path.name != _name(action):
        raise _corrupt(path, f"is not number {number}: an action is missing or was renamed")
    return action


def _corrupt(path: Path, what: str) -> CorruptRecord:
    return CorruptRecord(
        f"{path} {what}; put it back, or move {path.parents[1]} away to begin anew (its blobs stay readable)."
    )


def _digest(action: JournalAction) -> str:
    return hashlib.sha256(action.model_dump_json(exclude={"digest"}).encode()).hexdigest()


def _name(action: JournalAction) -> str:
    return f"{action.number:04d}-{action.action}.json"


def _make(home: Path) -> None:
    if not home.is_dir():
        home.parent.mkdir(parents=True, exist_ok=True)
        home.mkdir(mode=0o700, exist_ok=True)  # a copy of a private file is private
    ignore = home / ".gitignore"
    if not ignore.exists():
        files.write_file(ignore, "*\n")  # else `git stash -u` and `git clean` take the backups with them


def _describe_write_error(home: Path, error: OSError) -> str:
    what = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else str(error.strerror)
    return f"{error.filename or home} could not be written: {what}; nothing was lost, try again once it can be."
