"""Text for people: foreign text as one line, one wording of errors in data, and progress lines."""

from __future__ import annotations

from collections.abc import Callable

Tell = Callable[[str], None]
"""Callback that receives one line of text about the progress of a long operation."""


def to_one_line(text: str) -> str:
    """Return a text as one line, in which single spaces replace white space and unprintable characters.

    Text that an agent wrote can then never be read as a trailer of a commit or as a section of a page.
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


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
