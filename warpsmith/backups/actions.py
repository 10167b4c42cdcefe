"""What is done with backups but for restoring them: open, seal, keep, list, prune."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from warpsmith.backups import blobs, journal, user_files
from warpsmith.backups.models import AsideContent, Backup, BackupStatus, FileEntry, JournalAction
from warpsmith.errors import MissingInput, Misuse
from warpsmith.project import Project


def open_backups(project: Project, paths: Iterable[Path], label: str = "") -> tuple[Backup, ...]:
    """Back files up before they are edited; one that is not there yet will be removed by a restore.

    Raises:
        Misuse: no file, or one that is a folder, a link, too large, or could not be put back; none is backed up.
        CorruptRecord: the journal does not read.
        Busy: another process holds the backups.
        MachineLacks: the disk takes no more.
    """
    with journal.lock_backups(project):
        names = journal_names(project, paths)
        for name in names:
            user_files.require_writable(user_files.resolve_name(project, name))
        now = {name: user_files.read_content(user_files.resolve_name(project, name)) for name in names}
        entries = [FileEntry(path=name, state=blobs.store_blob(project, now[name])) for name in names]
        made = journal.append_action(project, "backup", entries, label)
        return tuple(backup for backup in _standing_after(journal.read_journal(project)) if backup.number == made.number)


def seal_backups(project: Project, paths: Iterable[Path]) -> tuple[Backup, ...]:
    """Say that an edit is finished: whatever differs from now on was changed by somebody else.

    Raises:
        MissingInput: a file has no backup.
        Misuse, CorruptRecord, Busy, MachineLacks: as `open_`.
    """
    with journal.lock_backups(project):
        names = [backup.path for backup in newest_backups(project, paths)]
        states = [blobs.store_blob(project, user_files.read_content(user_files.resolve_name(project, name))) for name in names]
        entries = [FileEntry(path=name, state=state) for name, state in zip(names, states, strict=True)]
        journal.append_action(project, "seal", entries)
        return newest_backups(project, [user_files.resolve_name(project, name) for name in names])


def keep_edits(project: Project, paths: Iterable[Path]) -> tuple[Backup, ...]:
    """Drop the newest backup of each file: its edit stays. The blobs stay until `prune`.

    Raises:
        MissingInput: a file has no backup.
        Misuse, CorruptRecord, Busy, MachineLacks: as `open_`.
    """
    with journal.lock_backups(project):
        dropped = newest_backups(project, paths)
        journal.append_action(project, "keep", [FileEntry(path=b.path, state=b.original) for b in dropped])
        return dropped


def standing_backups(project: Project) -> tuple[Backup, ...]:
    """The backups that were neither restored nor kept, by number; raises CorruptRecord."""
    return _standing_after(journal.read_journal(project))


def original_blob(project: Project, path: Path) -> Path:
    """The blob with the content that the newest backup of a file would put back; not to be written.

    Raises:
        MissingInput: the file has no backup, or was not there when it was made.
        CorruptRecord: the blob or the journal is torn or was edited.
    """
    (backup,) = newest_backups(project, [path])
    if backup.original.sha256 is None:
        raise MissingInput(f"{backup.path} was not there before its backup {backup.number:04d} was made.")
    return blobs.blob_path(project, backup.original)


def list_backups(project: Project) -> tuple[BackupStatus, ...]:
    """The backups that stand, each beside its file; raises CorruptRecord."""
    return tuple(
        BackupStatus(backup=backup, now=_file_condition(project, backup), sound=_blobs_are_sound(project, backup))
        for backup in standing_backups(project)
    )


def list_asides(project: Project) -> tuple[AsideContent, ...]:
    """The contents that no standing backup needs and that are still there, newest last; raises CorruptRecord."""
    actions = journal.read_journal(project)
    needed = _needed(_standing_after(actions))
    found: dict[tuple[str, str], AsideContent] = {}
    for action in actions:
        for entry in action.files:
            sha256 = entry.state.sha256
            if sha256 and sha256 not in needed and (blobs.blobs_folder(project) / sha256).is_file():
                found.pop((entry.path, sha256), None)
                found[entry.path, sha256] = AsideContent(path=entry.path, sha256=sha256, at=action.at)
    return tuple(found.values())


def prune_blobs(project: Project) -> int:
    """Remove the blobs that no standing backup needs, for good; how many there were.

    Raises:
        CorruptRecord, Busy, MachineLacks: as `open_`.
    """
    with journal.lock_backups(project):
        needed = _needed(standing_backups(project))
        idle = [path for path in blobs.blobs_folder(project).glob("*") if path.name not in needed]
        for path in idle:
            path.unlink()
        return len(idle)


def journal_names(project: Project, paths: Iterable[Path]) -> list[str]:
    """The journal's names of some files, each once; raises Misuse where there are none."""
    names = list(dict.fromkeys(user_files.journal_name(project, path) for path in paths))
    if not names:
        raise Misuse("No file is named; name at least one.")
    return names


def newest_backups(project: Project, paths: Iterable[Path]) -> tuple[Backup, ...]:
    """The newest standing backup of each file; raises MissingInput where one has none."""
    stacks = journal.backup_stacks(journal.read_journal(project))
    names = journal_names(project, paths)
    without = [name for name in names if name not in stacks]
    if without:
        raise MissingInput(
            f"{', '.join(without)}: no backup stands in {project.root}; `warpsmith backups` lists those that do."
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
    except Misuse:  # a folder or a link stands there now
        return "changed"
    if sha256 == backup.original.sha256:
        return "original"
    if sha256 is None:
        return "missing"
    return "edited" if backup.sealed is None or backup.sealed.sha256 == sha256 else "changed"


def _blobs_are_sound(project: Project, backup: Backup) -> bool:
    return all(blobs.blob_is_sound(project, state) for state in (backup.original, backup.sealed) if state)
