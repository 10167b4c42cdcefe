"""Contents by their hash: written once, checked at every read."""

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
    """Where the blobs are, each named by its SHA-256."""
    return user_files.backups_folder(project) / "blobs"


def store_blob(project: Project, content: Content) -> FileState:
    """Keep a content; a torn blob of the same content is mended."""
    state = content.state
    if content.data is not None and not blob_is_sound(project, state):
        files.write_file(_path(project, state), content.data)
    return state


def load_blob(project: Project, state: FileState) -> Content:
    """The content of that hash.

    Raises:
        CorruptRecord: its blob is gone, torn or was edited.
    """
    if state.sha256 is None:
        return Content(None)
    path = _path(project, state)
    data = path.read_bytes() if path.is_file() else None
    if data is None or hashlib.sha256(data).hexdigest() != state.sha256:
        what = "is gone" if data is None else "does not have its hash: it is torn or was edited"
        raise CorruptRecord(f"The blob {path} {what}; nothing was changed.")
    return Content(data, state.mode)


def blob_is_sound(project: Project, state: FileState) -> bool:
    """Whether the content can be had: its blob has its hash, or there was no file."""
    try:
        load_blob(project, state)
    except CorruptRecord:
        return False
    return True


def blob_path(project: Project, state: FileState) -> Path:
    """The blob's file, checked; raises CorruptRecord."""
    load_blob(project, state)
    return _path(project, state)


def _path(project: Project, state: FileState) -> Path:
    return blobs_folder(project) / str(state.sha256)
