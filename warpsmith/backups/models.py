"""Models of backups: entries of the journal, and the results of listing and restoring."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from warpsmith.core.base import Minute, Model, Sha256

Number = Annotated[int, Field(ge=1)]
"""Position of an action in the journal."""


class FileState(Model):
    """State of a file at one moment."""

    sha256: Sha256 | None
    """Hash of the content, which names its blob; None if there was no file."""
    size: Annotated[int, Field(ge=0)] = 0
    """Size in bytes."""
    mode: Annotated[int, Field(ge=0, le=0o7777)] = 0
    """Permission bits."""


class FileEntry(Model):
    """One file of an action."""

    path: str
    """Path relative to the project's root, with slashes; absolute for a file outside of it."""
    state: FileState
    """State of the file: original, after an edit, before it was overwritten, or after a restore."""


class JournalAction(Model):
    """One entry of the journal, in a file of its own that never changes."""

    number: Number
    """Position in the journal, without gaps."""
    action: Literal["backup", "seal", "aside", "restore", "keep"]
    """Kind of action. `aside` precedes a restore and names the contents that it overwrites; the others are
    commands."""
    at: Minute
    """Time in UTC."""
    label: str = ""
    """Purpose of the backup."""
    files: Annotated[tuple[FileEntry, ...], Field(min_length=1)]
    """Files of the action."""
    digest: Sha256
    """Hash of the fields above, which reveals an edit of the file."""


class Backup(Model):
    """Backup that was neither restored nor kept."""

    path: str
    """Path of the file: relative to the project's root, or absolute outside of it."""
    number: Number
    """Number in the journal; the largest number of a file is restored first."""
    label: str
    """Purpose of the backup."""
    made: Minute
    """Time in UTC."""
    original: FileState
    """State of the file before the edit."""
    sealed: FileState | None = None
    """State of the file after the edit; None until the edit is sealed."""


class BackupStatus(Model):
    """Standing backup with the condition of its file."""

    backup: Backup
    """Standing backup."""
    now: Literal["original", "edited", "changed", "missing"]
    """Condition. Edited: the edit is unsealed, or unchanged since it was sealed. Changed: modified after that."""
    sound: bool
    """True if the blobs that a restore needs still have their hash."""


class AsideContent(Model):
    """Content that no standing backup needs: from an edit that was kept, or overwritten by a restore."""

    path: str
    """File that had the content."""
    sha256: Sha256
    """Hash of the content, which names its blob."""
    at: Minute
    """Last time, in UTC, that the file had the content."""


class RestoredFile(Model):
    """Result of restoring one file."""

    path: str
    """Path of the file."""
    number: Number
    """Number of the restored backup."""
    label: str
    """Purpose of that backup."""
    how: Literal["original", "merged", "removed", "unchanged"]
    """Outcome. Merged: the edit was undone and later changes stay. Removed: the file did not exist before."""
    aside: Sha256 | None
    """Blob with the overwritten content; None if nothing was overwritten."""
