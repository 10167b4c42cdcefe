"""Blobs: contents stored by their hash, written once and checked at every read."""

from __future__ import annotations

import hashlib
from pathlib import Path

from warpsmith import files
from warpsmith.backups import user_files
from warpsmith.backups.models import FileState
from warpsmith.backups.user_files import Content
from warpsmith.errors import CorruptRecord
from warpsmith.project import Project


def blobs_folder(project: Project) -> Path:
    """Return the folder of the blobs, each of which is named by its SHA-256."""
    return user_files.backups_folder(project) / "blobs"


def store_blob(project: Project, content: Content) -> FileState:
    """Store a content; repair a damaged blob of the same content."""
    state = content.state
    if content.data is not None and not blob_is_sound(project, state):
        files.write_file(_path(project, state), content.data)
    return state


def load_blob(project: Project, state: FileState) -> Content:
    """Return the content with the hash of `state`.

    Raises:
        CorruptRecord: its blob is missing, incomplete or was edited.
    """
    if state.sha256 is None:
        return Content(None)
    path = _path(project, state)
    data = path.read_bytes() if path.is_file() else None
    if data is None or hashlib.sha256(data).hexdigest() != state.sha256:
        fault = "is missing" if data is None else "does not have its hash: it is incomplete or was edited"
        raise CorruptRecord(f"The blob {path} {fault}; nothing was changed.")
    return Content(data, state.mode)


def blob_is_sound(project: Project, state: FileState) -> bool:
    """Return whether the content is available: its blob has its hash, or there was no file."""
    try:
        load_blob(project, state)
    except CorruptRecord:
        return False
    return True


def blob_path(project: Project, state: FileState) -> Path:
    """Check the blob and return its path.

    Raises:
        CorruptRecord: the blob is missing, incomplete or was edited.
    """
    load_blob(project, state)
    return _path(project, state)


def _path(project: Project, state: FileState) -> Path:
    return blobs_folder(project) / str(state.sha256)
