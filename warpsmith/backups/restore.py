"""Restore: the original comes back, and what somebody changed since the edit stays or is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from warpsmith.backups import actions, blobs, journal, merge, user_files
from warpsmith.backups.models import Backup, FileEntry, RestoredFile
from warpsmith.backups.user_files import Content
from warpsmith.errors import WarpsmithError
from warpsmith.project import Project


class RestoreConflict(WarpsmithError):
    """A file was changed since the edit, in a way that a restore would overwrite; nothing was restored."""

    exit_code = 1

    def __init__(self, message: str, diffs: str = "") -> None:
        """With what was changed since, as diffs."""
        super().__init__(message)
        self.diffs = diffs


@dataclass(frozen=True)
class _FileRestore:
    """What is to become of one file."""

    path: Path
    backup: Backup
    now: Content
    after: Content
    merged: bool = False

    @property
    def changes(self) -> bool:
        return self.now != self.after

    @property
    def overwrites(self) -> bool:
        return self.now.data not in (None, self.after.data)

    @property
    def how(self) -> Literal["original", "merged", "removed", "unchanged"]:
        if not self.changes:
            return "unchanged"
        if self.merged:
            return "merged"
        return "removed" if self.after.data is None else "original"


def restore_files(project: Project, paths: Iterable[Path], force: bool = False) -> tuple[RestoredFile, ...]:
    """Take back what was edited since the newest backup of each file: all files or none.

    What somebody changed after `seal` is merged with the original where the two do not collide. Each content
    that is overwritten is kept as a blob first.

    Args:
        project: whose backups.
        paths: the files.
        force: put the original back, whatever was changed since.

    Raises:
        Conflict: a file was changed since the edit, and that does not merge; `shown` has the diffs.
        MissingInput: a file has no backup.
        CorruptRecord: a blob that is needed, or the journal, is torn or was edited.
        Misuse: a folder or a link stands in a file's place, or may not be written.
        Busy: another process holds the backups.
        MachineLacks: a file could not be written; those written before it are as they were.
    """
    with journal.lock_backups(project):
        steps = _plan(project, actions.newest_backups(project, paths), force)
        asides = [step for step in steps if step.overwrites]
        if asides:
            entries = [FileEntry(path=s.backup.path, state=blobs.store_blob(project, s.now)) for s in asides]
            journal.append_action(project, "aside", entries)
        with _undo_on_failure(steps):
            for step in steps:
                _write(step)
        # Last of all: a process killed before this leaves the backup, and restoring again goes on from there.
        journal.append_action(project, "restore", [FileEntry(path=s.backup.path, state=s.after.state) for s in steps])
        return tuple(_restored(step) for step in steps)


def _plan(project: Project, backups: Sequence[Backup], force: bool) -> list[_FileRestore]:
    steps, colliding = [], []
    for backup in backups:
        path = user_files.resolve_name(project, backup.path)
        user_files.require_writable(path)
        now = user_files.read_content(path)
        step = _plan_file(project, backup, path, now, force)
        if step:
            steps.append(step)
        else:
            colliding.append((backup, now))
    if colliding:
        raise _conflict(project, colliding)
    return steps


def _plan_file(project: Project, backup: Backup, path: Path, now: Content, force: bool) -> _FileRestore | None:
    """None where the change made since collides."""
    original, sealed = blobs.load_blob(project, backup.original), backup.sealed
    if force or sealed is None:
        return _FileRestore(path, backup, now, original)
    mode = original.mode if now.data is None or now.mode == sealed.mode else now.mode
    if now.state.sha256 in (sealed.sha256, original.state.sha256):
        return _FileRestore(path, backup, now, Content(original.data, mode if original.data is not None else 0))
    base = blobs.load_blob(project, sealed)
    if original.data is None or base.data is None or now.data is None:
        return None
    merged = merge.merge_text(now.data, base.data, original.data)
    return None if merged is None else _FileRestore(path, backup, now, Content(merged, mode), merged=True)


def _conflict(project: Project, colliding: Sequence[tuple[Backup, Content]]) -> RestoreConflict:
    names = ", ".join(backup.path for backup, _ in colliding)
    diffs = [
        merge.describe_change(blobs.load_blob(project, backup.sealed).data, now.data, backup.path)
        for backup, now in colliding
        if backup.sealed
    ]
    return RestoreConflict(
        f"{names}: changed since the edit, and that does not merge with the original; nothing was restored: take"
        " that change out first, or let `--force` put the original back (what it overwrites is kept aside).",
        "".join(diffs),
    )


def _write(step: _FileRestore) -> None:
    if user_files.read_content(step.path) != step.now:  # somebody was faster than the check above
        raise RestoreConflict(f"{step.backup.path}: changed while it was restored; nothing was restored, try again.")
    if step.changes:
        user_files.write_content(step.path, step.after)


@contextmanager
def _undo_on_failure(steps: Sequence[_FileRestore]) -> Iterator[None]:
    try:
        yield
    except BaseException:  # Ctrl-C too
        for step in steps:
            with suppress(OSError, WarpsmithError):
                if step.changes and user_files.read_content(step.path).data == step.after.data:
                    user_files.write_content(step.path, step.now)
        raise


def _restored(step: _FileRestore) -> RestoredFile:
    aside = step.now.state.sha256 if step.overwrites else None
    return RestoredFile(
        path=step.backup.path, number=step.backup.number, label=step.backup.label, how=step.how, aside=aside
    )
