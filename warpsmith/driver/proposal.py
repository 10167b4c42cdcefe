"""Lesson that a designer proposes at LEARN, before the knowledge gate checks it."""

from __future__ import annotations

from typing import Literal

from warpsmith.core.base import Model
from warpsmith.core.campaign import Tip


class LessonProposal(Model):
    """Lesson to be checked."""

    action: Literal["add", "refine", "refute", "nothing"]
    """Change to the knowledge."""
    entry: str | None = None
    """Id of the entry to refine or refute."""
    text: str = ""
    """Page to add, note that refines, or reason why the entry is refuted or nothing is new."""
    reason: str = ""
    """Reason for the change, for the record; by default the text of a note."""
    tip: Tip | None = None
    """Short reusable lesson."""
