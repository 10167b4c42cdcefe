"""Actions on backups, except restoring: open, seal, keep, list and prune."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from warpsmith.backups import blobs, journal, user_files
from warpsmith.backups.models import AsideContent, Backup, BackupStatus, FileEntry, JournalAction
from warpsmith.errors import MissingInput, Misuse
from warpsmith.project import Project


def open_backups(project: Project, paths: Iterable[Path], label: str = "") -> tuple[Backup, ...]:
    """Back up files before they are edited; a restore removes a file that does not exist yet.

    Raises:
        Misuse: no file is named, or one is a folder, a link, too large, or could not be restored; none is backed
            up.
        CorruptRecord: the journal cannot be read.
        Busy: another process holds the backups.
        MachineLacks: a file could not be written.
    """
    with journal.lock_backups(project):
        names = journal_names(project, paths)
        for name in names:
            user_files.require_writable(user_files.resolve_name(project, name))
        contents = {name: user_files.read_content(user_files.resolve_name(project, name)) for name in names}
        entries = [FileEntry(path=name, state=blobs.store_blob(project, contents[name])) for name in names]
        action = journal.append_action(project, "backup", entries, label)
        return tuple(
            backup for backup in _standing_after(journal.read_journal(project)) if backup.number == action.number
        )


def seal_backups(project: Project, paths: Iterable[Path]) -> tuple[Backup, ...]:
    """Record that an edit is finished: whatever differs from now on was changed by somebody else.

    Raises:
        MissingInput: a file has no backup.
        Misuse, CorruptRecord, Busy, MachineLacks: as `open_backups`.
    """
    with journal.lock_backups(project):
        names = [backup.path for backup in newest_backups(project, paths)]
        states = [
            blobs.store_blob(project, user_files.read_content(user_files.resolve_name(project, name)))
            for name in names
        ]
        entries = [FileEntry(path=name, state=state) for name, state in zip(names, states, strict=True)]
        journal.append_action(project, "seal", entries)
        return newest_backups(project, [user_files.resolve_name(project, name) for name in names])


def keep_edits(project: Project, paths: Iterable[Path]) -> tuple[Backup, ...]:
    """Drop the newest backup of each file, so that its edit stays. The blobs stay until `prune_blobs`.

    Raises:
        MissingInput: a file has no backup.
        Misuse, CorruptRecord, Busy, MachineLacks: as `open_backups`.
    """
    with journal.lock_backups(project):
        dropped = newest_backups(project, paths)
        journal.append_action(project, "keep", [FileEntry(path=b.path, state=b.original) for b in dropped])
        return dropped


def standing_backups(project: Project) -> tuple[Backup, ...]:
    """Return the backups that were neither restored nor kept, sorted by number.

    Raises:
        CorruptRecord: the journal cannot be read.
    """
    return _standing_after(journal.read_journal(project))


def original_blob(project: Project, path: Path) -> Path:
    """Return the blob with the content that the newest backup of a file would restore; it must not be written to.

    Raises:
        MissingInput: the file has no backup, or did not exist when the backup was made.
        CorruptRecord: the blob or the journal is incomplete or was edited.
    """
    (backup,) = newest_backups(project, [path])
    if backup.original.sha256 is None:
        raise MissingInput(f"{backup.path} did not exist when its backup {backup.number:04d} was made.")
    return blobs.blob_path(project, backup.original)


def list_backups(project: Project) -> tuple[BackupStatus, ...]:
    """List the standing backups, each with the condition of its file.

    Raises:
        CorruptRecord: the journal cannot be read.
    """
    return tuple(
        BackupStatus(backup=backup, now=_file_condition(project, backup), sound=_blobs_are_sound(project, backup))
        for backup in standing_backups(project)
    )


def list_asides(project: Project) -> tuple[AsideContent, ...]:
    """List the stored contents that no standing backup needs, newest last.

    Raises:
        CorruptRecord: the journal cannot be read.
    """
    actions = journal.read_journal(project)
    needed = _needed(_standing_after(actions))
    contents: dict[tuple[str, str], AsideContent] = {}
    for action in actions:
        for entry in action.files:
            sha256 = entry.state.sha256
            if sha256 and sha256 not in needed and (blobs.blobs_folder(project) / sha256).is_file():
                contents.pop((entry.path, sha256), None)
                contents[entry.path, sha256] = AsideContent(path=entry.path, sha256=sha256, at=action.at)
    return tuple(contents.values())


def prune_blobs(project: Project) -> int:
    """Delete the blobs that no standing backup needs; return their number.

    Raises:
        CorruptRecord, Busy, MachineLacks: as `open_backups`.
    """
    with journal.lock_backups(project):
        needed = _needed(standing_backups(project))
        unused = [path for path in blobs.blobs_folder(project).glob("*") if path.name not in needed]
        for path in unused:
            path.unlink()
        return len(unused)


def journal_names(project: Project, paths: Iterable[Path]) -> list[str]:
    """Return the names of files in the journal, each once.

    Raises:
        Misuse: there are no files.
    """
    names = list(dict.fromkeys(user_files.journal_name(project, path) for path in paths))
    if not names:
        raise Misuse("No file is named; name at least one.")
    return names


def newest_backups(project: Project, paths: Iterable[Path]) -> tuple[Backup, ...]:
    """Return the newest standing backup of each file.

    Raises:
        MissingInput: a file has none.
    """
    stacks = journal.backup_stacks(journal.read_journal(project))
    names = journal_names(project, paths)
    missing = [name for name in names if name not in stacks]
    if missing:
        raise MissingInput(
            f"{', '.join(missing)}: no backup stands in {project.root}; `warpsmith backups` lists those that do."
        )
    return tuple(stacks[name][-1] for name in names)


def _standing_after(actions: Sequence[JournalAction]) -> tuple[Backup, ...]:
    stacks = journal.backup_stacks(actions)
    return tuple(sorted((b for stack in stacks.values() for b in stack), key=lambda b: b.number))


def _needed(backups: Iterable[Backup]) -> set[str | None]:
    return {state.sha256 for backup in backups for state in (backup.original, backup.sealed) if state}


def _file_condition(project: Project, backup: Backup) -> Literal["original", "edited", "changed", "missing"]:
    try:
        sha256 = user_files.read_content(user_files.resolve_name(project, backup.path)).state.sha256
    except Misuse:  # A folder or a link has taken the place of the file.
        return "changed"
    if sha256 == backup.original.sha256:
        return "original"
    if sha256 is None:
        return "missing"
    return "edited" if backup.sealed is None or backup.sealed.sha256 == sha256 else "changed"


def _blobs_are_sound(project: Project, backup: Backup) -> bool:
    return all(blobs.blob_is_sound(project, state) for state in (backup.original, backup.sealed) if state)
