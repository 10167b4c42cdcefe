"""Restoring: the original returns, and later changes by others are kept or shown."""

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
    """A file was changed after the edit in a way that a restore would overwrite; nothing was restored."""

    exit_code = 1

    def __init__(self, message: str, diffs: str = "") -> None:
        """Store the message, and diffs of the changes since the edit."""
        super().__init__(message)
        self.diffs = diffs


@dataclass(frozen=True)
class _FileRestore:
    """Planned restore of one file."""

    path: Path
    backup: Backup
    before: Content
    after: Content
    merged: bool = False

    @property
    def changes(self) -> bool:
        return self.before != self.after

    @property
    def overwrites(self) -> bool:
        return self.before.data not in (None, self.after.data)

    @property
    def outcome(self) -> Literal["original", "merged", "removed", "unchanged"]:
        if not self.changes:
            return "unchanged"
        if self.merged:
            return "merged"
        return "removed" if self.after.data is None else "original"


def restore_files(project: Project, paths: Iterable[Path], force: bool = False) -> tuple[RestoredFile, ...]:
    """Undo the edits since the newest backup of each file; either all files are restored or none.

    Changes that somebody made after `seal_backups` are merged with the original if they do not conflict. Each
    content that is overwritten is stored as a blob first.

    Args:
        project: the project of the backups.
        paths: the files.
        force: restore the original despite later changes.

    Raises:
        RestoreConflict: a file was changed after the edit, and that change does not merge; `diffs` has the
            changes.
        MissingInput: a file has no backup.
        CorruptRecord: a required blob, or the journal, is incomplete or was edited.
        Misuse: a folder or a link has taken the place of a file, or a file may not be written.
        Busy: another process holds the backups.
        MachineLacks: a file could not be written; files written before it are as they were.
    """
    with journal.lock_backups(project):
        steps = _plan(project, actions.newest_backups(project, paths), force)
        asides = [step for step in steps if step.overwrites]
        if asides:
            entries = [FileEntry(path=s.backup.path, state=blobs.store_blob(project, s.before)) for s in asides]
            journal.append_action(project, "aside", entries)
        with _undo_on_failure(steps):
            for step in steps:
                _write(step)
        # This entry comes last: if a process is killed before it, the backup stays and can be restored again.
        journal.append_action(
            project, "restore", [FileEntry(path=s.backup.path, state=s.after.state) for s in steps]
        )
        return tuple(_restored(step) for step in steps)


def _plan(project: Project, backups: Sequence[Backup], force: bool) -> list[_FileRestore]:
    steps, colliding = [], []
    for backup in backups:
        path = user_files.resolve_name(project, backup.path)
        user_files.require_writable(path)
        content = user_files.read_content(path)
        step = _plan_file(project, backup, path, content, force)
        if step:
            steps.append(step)
        else:
            colliding.append((backup, content))
    if colliding:
        raise _conflict(project, colliding)
    return steps


def _plan_file(project: Project, backup: Backup, path: Path, content: Content, force: bool) -> _FileRestore | None:
    """Plan the restore of one file; None if a later change conflicts."""
    original, sealed = blobs.load_blob(project, backup.original), backup.sealed
    if force or sealed is None:
        return _FileRestore(path, backup, content, original)
    mode = original.mode if content.data is None or content.mode == sealed.mode else content.mode
    if content.state.sha256 in (sealed.sha256, original.state.sha256):
        return _FileRestore(
            path, backup, content, Content(original.data, mode if original.data is not None else 0)
        )
    base = blobs.load_blob(project, sealed)
    if original.data is None or base.data is None or content.data is None:
        return None
    merged = merge.merge_text(content.data, base.data, original.data)
    return None if merged is None else _FileRestore(path, backup, content, Content(merged, mode), merged=True)


def _conflict(project: Project, colliding: Sequence[tuple[Backup, Content]]) -> RestoreConflict:
    names = ", ".join(backup.path for backup, _ in colliding)
    diffs = [
        merge.describe_change(blobs.load_blob(project, backup.sealed).data, content.data, backup.path)
        for backup, content in colliding
        if backup.sealed
    ]
    return RestoreConflict(
        f"{names}: changed since the edit, and the change does not merge with the original; nothing was restored:"
        " undo the change first, or restore the original with `--force` (overwritten contents are kept aside).",
        "".join(diffs),
    )


def _write(step: _FileRestore) -> None:
    if user_files.read_content(step.path) != step.before:  # Somebody changed the file after the check above.
        raise RestoreConflict(
            f"{step.backup.path}: changed while it was restored; nothing was restored, so try again."
        )
    if step.changes:
        user_files.write_content(step.path, step.after)


@contextmanager
def _undo_on_failure(steps: Sequence[_FileRestore]) -> Iterator[None]:
    try:
        yield
    except BaseException:  # Including Ctrl-C.
        for step in steps:
            with suppress(OSError, WarpsmithError):
                if step.changes and user_files.read_content(step.path).data == step.after.data:
                    user_files.write_content(step.path, step.before)
        raise


def _restored(step: _FileRestore) -> RestoredFile:
    aside = step.before.state.sha256 if step.overwrites else None
    return RestoredFile(
        path=step.backup.path, number=step.backup.number, label=step.backup.label, how=step.outcome, aside=aside
    )
