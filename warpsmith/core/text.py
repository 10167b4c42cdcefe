"""Text for people: foreign text as one line, one wording of errors in data, and progress lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

Tell = Callable[[str], None]
"""Callback that receives one line of text about the progress of a long operation."""

VERSION = r"v[1-9][0-9]*(?:_[a-z0-9]{4})?"
"""Pattern of the name of a version: `v3`, or `v3_k2f9` with the suffix of its campaign."""


class ProgressLine(str):
    """Line of progress, told when a part begins, with the share of the operation that was done before it."""

    __slots__ = ("share",)
    share: float
    """Share of the operation, from 0 to 1."""

    def __new__(cls, text: str, share: float) -> Self:
        """Return the text with its share."""
        line = super().__new__(cls, text)
        line.share = share
        return line


class NoticeLine(str):
    """Line that is shown where no progress is shown too, such as the reason for a long wait."""

    __slots__ = ()


class PartCounter:
    """Counter of an operation's parts, about equally long, that tells each when it begins."""

    def __init__(self, tell: Tell, total: int) -> None:
        """Count from 0 to `total`, the number of parts that are expected."""
        self._tell, self._total, self._count = tell, total, 0

    def begin(self, text: str, parts: int = 1) -> None:
        """Tell that the next part begins, as long as `parts` of them; those beyond the total do not reach 1."""
        self._tell(ProgressLine(text, min(self._count / self._total, 0.99)))
        self._count += parts

    def end(self, text: str) -> None:
        """Tell that the last part is done."""
        self._tell(ProgressLine(text, 1.0))


def to_one_line(text: str) -> str:
    """Return a text as one line, in which single spaces replace white space and unprintable characters.

    Text that an agent wrote can then never be read as a trailer of a commit or as a section of a page.
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def quote_foreign(text: str, limit: int = 600) -> str:
    """Return text that a version or its tools printed, in one line between ⟦ and ⟧.

    The brackets mark it as data for an agent that reads it, and the text itself cannot close them.
    """
    line = to_one_line(text).replace("⟦", "[").replace("⟧", "]")
    return f"⟦{line[:limit]}⟧"


def describe_error(error: Exception) -> str:
    """Return the first error of a model with its location, or the message of any other error, in one line."""
    from pydantic import ValidationError  # hooks import this module and have no time for pydantic

    if not isinstance(error, ValidationError):
        return " ".join(str(error).split())
    first = error.errors(include_url=False, include_input=False)[0]
    location = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"unknown key `{location}`"
    if first["type"] == "missing":
        return f"the key `{location}` is missing"
    message = " ".join(first["msg"].removeprefix("Value error, ").split())
    return f"`{location}`: {message}" if location else message
