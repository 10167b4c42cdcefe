"""One wording of errors in data for every file and command."""

from __future__ import annotations

from pydantic import ValidationError


def describe_error(error: Exception) -> str:
    """Return the first error of a model with its location, or the message of any other error, in one line."""
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
