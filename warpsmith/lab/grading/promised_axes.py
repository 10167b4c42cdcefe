"""Axes that a definition's promises in words bind to some sizes, and those that they leave free."""

from __future__ import annotations

import re

from warpsmith.core.definition import Definition

_SIZE_NOUNS = r"\b(sizes?|shapes?|dimensions?|ax[ie]s|lengths?)\b"
_SIZE_WORDS = rf"{_SIZE_NOUNS}|\b(multiples?|divisible|divides?|even|odd)\b"
"""Words by which a promise is about sizes, whichever it names."""


def unbound_axes(definition: Definition) -> list[str]:
    """Return the axes without a promise in words; none where one is about sizes that it does not name."""
    bound: set[str] = set()
    for promise in definition.constraints:
        text = re.sub(rf"\b({'|'.join(map(re.escape, definition.inputs))})\b", "", promise)  # such as `lengths`
        about_sizes = re.search(_SIZE_WORDS, text, re.IGNORECASE)
        names, rest = set(re.findall(r"\w+", promise)) & set(definition.axes), ""
        if about_sizes and not names:
            names, rest = _described_axes(definition, promise)
        if about_sizes and (not names or re.search(_SIZE_NOUNS, rest, re.IGNORECASE)):
            return []
        if about_sizes or not set(re.findall(r"\w+", promise)) & set(definition.inputs):
            bound |= names
    return [name for name, size in definition.axes.items() if isinstance(size, str) and name not in bound]


def _described_axes(definition: Definition, promise: str) -> tuple[set[str], str]:
    """Return the axes whose description a promise has, and the rest of it."""
    names = set()
    for axis, description in definition.axes.items():
        words = rf"\b{re.escape(str(description))}\b"
        if isinstance(description, str) and re.search(words, promise, re.IGNORECASE):
            names.add(axis)
            promise = re.sub(words, "", promise, flags=re.IGNORECASE)
    return names, promise
