"""Foreign text as one line: what an agent wrote is never read as a trailer of a commit, or a section of a page."""

from __future__ import annotations


def to_one_line(text: str) -> str:
    """A text as one line: white space and what does not print are single spaces."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
