"""What a designer says at LEARN, before the knowledge gate has looked at it."""

from __future__ import annotations

from typing import Literal

from warpsmith.core.base import Model
from warpsmith.core.campaign import Tip


class LessonProposal(Model):
    """A lesson to be checked."""

    action: Literal["add", "refine", "refute", "nothing"]
    """What to do."""
    entry: str | None = None
    """Id of the entry to refine or refute."""
    text: str = ""
    """The page to add, the note that refines, or why it is refuted or nothing new."""
    reason: str = ""
    """What the record keeps of a change; by default the text of a note."""
    tip: Tip | None = None
    """A short reusable lesson."""
