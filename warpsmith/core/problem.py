"""What is wrong with data, in a few words for a sentence: one wording for every file and command."""

from __future__ import annotations

from pydantic import ValidationError


def describe_error(error: Exception) -> str:
    """The first thing that a model refused, with its place; of any other error its message, in one line."""
    if not isinstance(error, ValidationError):
        return " ".join(str(error).split())
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"unknown key `{place}`"
    if first["type"] == "missing":
        return f"the key `{place}` is missing"
    message = " ".join(first["msg"].removeprefix("Value error, ").split())
    return f"`{place}`: {message}" if place else message
