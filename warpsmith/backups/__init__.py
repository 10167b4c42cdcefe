"""Backups: edits of a user's files are reversible, even after a crash and outside git."""

from warpsmith.backups.actions import (
    keep_edits,
    list_asides,
    list_backups,
    open_backups,
    original_blob,
    prune_blobs,
    seal_backups,
    standing_backups,
)
from warpsmith.backups.restore import RestoreConflict, restore_files

__all__ = [
    "RestoreConflict", "keep_edits", "list_asides", "list_backups", "open_backups", "original_blob", "prune_blobs",
    "restore_files", "seal_backups", "standing_backups",
]  # fmt: skip
