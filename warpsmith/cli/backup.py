"""`warpsmith backup`, `restore`, `keep` and `backups`: edits of files that can be undone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.cli.options import Json

if TYPE_CHECKING:
    from warpsmith.backups.models import AsideContent, Backup, BackupStatus, RestoredFile
    from warpsmith.project import Project

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...", help="Files, inside the project or not.", readable=False
    ),  # own error message
]

_STATE_WORDS = {
    "original": "unchanged since",
    "edited": "edited",
    "changed": "edited, and changed again since",
    "missing": "deleted since",
}
_RESTORE_WORDS = {
    "original": "is as it was at backup",
    "merged": "has the edit undone; later changes stay; backup",
    "removed": "did not exist before and is removed; backup",
    "unchanged": "already had its original content; backup",
}


def backup_command(
    files: Files,
    label: Annotated[str, typer.Option(help="Purpose of the edit.")] = "",
) -> None:
    """Back files up before an edit. Several backups of one file stack.

    A file that does not exist yet may be named too; a restore removes it.
    """
    from warpsmith import backups
    from warpsmith.project import find_project

    for backup in backups.open_backups(find_project(), files, label):
        console.out(_backup_line(backup))


def restore_command(
    files: Files,
    force: Annotated[
        bool, typer.Option("--force", help="Restore even if the file was changed after the edit.")
    ] = False,
) -> None:
    """Restore files to their newest backup: all of them or none.

    Changes made after the edit stay if they do not conflict with it. Exit code 1: they conflict; the conflict
    is printed and nothing is restored. Content that is overwritten is kept aside.
    """
    from warpsmith import backups
    from warpsmith.project import find_project

    project = find_project()
    try:
        restored = backups.restore_files(project, files, force)
    except backups.RestoreConflict as conflict:
        if conflict.diffs:
            console.out(conflict.diffs)
        raise
    for item in restored:
        console.out(_restore_line(project, item))


def keep_command(files: Files) -> None:
    """Keep an edit: drop the newest backup of each file. The originals stay aside until they are pruned."""
    from warpsmith import backups
    from warpsmith.project import find_project

    for dropped in backups.keep_edits(find_project(), files):
        console.out(f"{dropped.path}: keeps its edit; backup {dropped.number:04d} is dropped")


def backups_command(
    as_json: Json = False,
    aside: Annotated[
        bool, typer.Option("--aside", help="List the content that was kept aside, with its blob.")
    ] = False,
    prune: Annotated[bool, typer.Option("--prune", help="Delete the content that was kept aside.")] = False,
) -> None:
    """List all backups, each checked by its hash. Exit code 3: a backup is incomplete or was edited."""
    from warpsmith import backups
    from warpsmith.errors import CorruptRecord
    from warpsmith.project import find_project

    project = find_project()
    if prune:
        console.out(f"blobs removed: {backups.prune_blobs(project)}")
        return
    if aside:
        for item in backups.list_asides(project):
            console.out(item.model_dump_json() if as_json else _aside_line(project, item))
        return
    statuses = backups.list_backups(project)
    for status in statuses:
        console.out(status.model_dump_json() if as_json else _status_line(status))
    if not all(status.sound for status in statuses):
        raise typer.Exit(CorruptRecord.exit_code)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("backup")(backup_command)
    app.command("backups")(backups_command)
    app.command("restore")(restore_command)
    app.command("keep")(keep_command)


def _backup_line(backup: Backup) -> str:
    if backup.original.sha256 is None:
        return f"{backup.path}: does not exist yet; restoring backup {backup.number:04d} removes it"
    return f"{backup.path}: backup {backup.number:04d}, {backup.original.size} bytes"


def _restore_line(project: Project, item: RestoredFile) -> str:
    text = f"{item.path}: {_RESTORE_WORDS[item.how]} {item.number:04d}"
    return text if item.aside is None else f"{text}\n  replaced content: {_blob_path(project, item.aside)}"


def _status_line(status: BackupStatus) -> str:
    backup = status.backup
    label = f" ({backup.label})" if backup.label else ""
    torn = "" if status.sound else "; ITS BLOB IS INCOMPLETE OR WAS EDITED"
    return f"{backup.number:04d}  {backup.made}  {backup.path}{label}: {_STATE_WORDS[status.now]}{torn}"


def _aside_line(project: Project, item: AsideContent) -> str:
    return f"{item.at}  {item.path}: {_blob_path(project, item.sha256)}"


def _blob_path(project: Project, sha256: str) -> Path:
    from warpsmith.backups import blobs

    return blobs.blobs_folder(project) / sha256
