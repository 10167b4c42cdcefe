"""`warpsmith backup`, `restore`, `keep` and `backups`: edits of files that can be taken back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console

if TYPE_CHECKING:
    from warpsmith.backups.models import Aside, Backup, Listed, Restored
    from warpsmith.project import Project

Files = Annotated[
    list[Path],
    typer.Argument(metavar="FILE...", help="Files, inside the project or not.", readable=False),  # we say why
]

_NOW = {
    "original": "unchanged since",
    "edited": "edited",
    "changed": "edited, and changed by somebody since",
    "missing": "gone since",
}
_HOW = {
    "original": "is as it was at backup",
    "merged": "has the edit taken back; what was changed since stays; backup",
    "removed": "was not there before and is removed; backup",
    "unchanged": "was as it should be already; backup",
}


def backup(
    files: Files,
    label: Annotated[str, typer.Option(help="What the edit is for.")] = "",
) -> None:
    """Keep the files as they are, before an edit. Several backups of one file stack.

    A file that is not there yet may be named too: a restore removes it.
    """
    from warpsmith import backups, project

    for made in backups.open_(project.find(), files, label):
        console.out(_made(made))


def restore(
    files: Files,
    force: Annotated[bool, typer.Option("--force", help="Whatever was changed since the edit.")] = False,
) -> None:
    """Put the files back as they were at their newest backup: all of them or none.

    What somebody changed after the edit stays where the two do not collide. Exit code 1: they collide; the
    change is shown, and nothing was restored. What is overwritten is kept aside.
    """
    from warpsmith import backups, project

    here = project.find()
    try:
        done = backups.restore(here, files, force)
    except backups.Conflict as conflict:
        if conflict.shown:
            console.out(conflict.shown)
        raise
    for one in done:
        console.out(_restored(here, one))


def keep(files: Files) -> None:
    """Keep the edit of the files: drop the newest backup of each. The originals stay aside until pruned."""
    from warpsmith import backups, project

    for dropped in backups.keep(project.find(), files):
        console.out(f"{dropped.path}: stays as it is; backup {dropped.number:04d} is dropped")


def backups(
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON for each.")] = False,
    aside: Annotated[
        bool, typer.Option("--aside", help="List what was overwritten or kept instead, with its blob.")
    ] = False,
    prune: Annotated[bool, typer.Option("--prune", help="Remove what was put aside, for good.")] = False,
) -> None:
    """List the backups that stand, each checked by its hash. Exit code 3: one is torn or was edited."""
    from warpsmith import backups, project
    from warpsmith.errors import CorruptRecord

    here = project.find()
    if prune:
        console.out(f"blobs removed: {backups.prune(here)}")
        return
    if aside:
        for one in backups.asides(here):
            console.out(one.model_dump_json() if as_json else _aside(here, one))
        return
    found = backups.listed(here)
    for listed in found:
        console.out(listed.model_dump_json() if as_json else _listed(listed))
    if not all(listed.sound for listed in found):
        raise typer.Exit(CorruptRecord.exit_code)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (backup, restore, keep, backups):
        app.command()(command)


def _made(made: Backup) -> str:
    if made.original.sha256 is None:
        return f"{made.path}: is not there yet; restoring backup {made.number:04d} removes it"
    return f"{made.path}: backup {made.number:04d}, {made.original.size} bytes"


def _restored(here: Project, one: Restored) -> str:
    text = f"{one.path}: {_HOW[one.how]} {one.number:04d}"
    return text if one.aside is None else f"{text}\n  what it was until now: {_blob(here, one.aside)}"


def _listed(listed: Listed) -> str:
    made = listed.backup
    label = f" ({made.label})" if made.label else ""
    torn = "" if listed.sound else "; ITS BLOB IS TORN OR WAS EDITED"
    return f"{made.number:04d}  {made.made}  {made.path}{label}: {_NOW[listed.now]}{torn}"


def _aside(here: Project, one: Aside) -> str:
    return f"{one.at}  {one.path}: {_blob(here, one.sha256)}"


def _blob(here: Project, sha256: str) -> Path:
    from warpsmith.backups import blobs

    return blobs.folder(here) / sha256
