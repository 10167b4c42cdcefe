"""Backups: edits of a user's files are reversible, also after a crash and outside git."""

from warpsmith.backups.actions import asides, keep, listed, open_, original, prune, seal, standing
from warpsmith.backups.restore import Conflict, restore

__all__ = [
    "Conflict", "asides", "keep", "listed", "open_", "original", "prune", "restore", "seal", "standing",
]  # fmt: skip
