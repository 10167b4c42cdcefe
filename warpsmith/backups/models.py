"""Backups: what the journal says of a user's files, and what became of them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from warpsmith.core.base import Minute, Model, Sha256

Number = Annotated[int, Field(ge=1)]
"""An action's place in the journal."""


class FileState(Model):
    """What a file was at one moment."""

    sha256: Sha256 | None
    """The hash of its content, which names its blob; None where there was no file."""
    size: Annotated[int, Field(ge=0)] = 0
    """In bytes."""
    mode: Annotated[int, Field(ge=0, le=0o7777)] = 0
    """Its permission bits."""


class FileEntry(Model):
    """One file of an action."""

    path: str
    """Relative to the project's root, with slashes; absolute for a file outside of it."""
    state: FileState
    """What the file was: the original, what an edit left, what was overwritten or what a restore left."""


class JournalAction(Model):
    """One line of the journal, in a file of its own that never changes."""

    number: Number
    """Its place, without gaps."""
    action: Literal["backup", "seal", "aside", "restore", "keep"]
    """`aside` stands before a restore and names what that overwrites; the others are commands."""
    at: Minute
    """When, in UTC."""
    label: str = ""
    """What the backup was made for."""
    files: Annotated[tuple[FileEntry, ...], Field(min_length=1)]
    """The files that it is about."""
    digest: Sha256
    """The hash of the fields above, so that an edit shows."""


class Backup(Model):
    """A backup that stands: it was neither restored nor kept."""

    path: str
    """The file: relative to the project's root, or absolute outside of it."""
    number: Number
    """The journal's number; of one file, the largest is restored first."""
    label: str
    """What it was made for."""
    made: Minute
    """When, in UTC."""
    original: FileState
    """The file as it was."""
    sealed: FileState | None = None
    """The file as the edit left it; None while nobody said that the edit is finished."""


class BackupStatus(Model):
    """A backup that stands, beside the file as it is now."""

    backup: Backup
    """The backup."""
    now: Literal["original", "edited", "changed", "missing"]
    """Edited: the edit is unsealed or as it was sealed. Changed: by somebody since."""
    sound: bool
    """Whether the blobs that a restore needs still have their hash."""


class AsideContent(Model):
    """A content that no standing backup needs: of an edit that was kept, or what a restore overwrote."""

    path: str
    """The file that had it."""
    sha256: Sha256
    """Its hash, which names its blob."""
    at: Minute
    """When it was last seen, in UTC."""


class RestoredFile(Model):
    """What a restore did to a file."""

    path: str
    """The file."""
    number: Number
    """The backup that was restored."""
    label: str
    """What that was made for."""
    how: Literal["original", "merged", "removed", "unchanged"]
    """Merged: the edit was taken back and what was changed since stays. Removed: there was no file before."""
    aside: Sha256 | None
    """The blob with what was overwritten; None where nothing was."""
