"""HTML that is safe to place in a page: every other text is escaped before it gets there."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable

from warpsmith.reporting import format

LONGEST = 4000
"""Largest number of characters of one foreign text on a page; the record has the full text."""

_LINE_ENDS = ("\n", "\t")


class Html(str):
    """Text that is already HTML; templates leave it as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        """Return itself, by which template engines know it."""
        return self


def escape(text: str) -> Html:
    """Escape foreign text of one line, without control and bidirectional characters; a space at an end stays."""
    simple = len(text) <= LONGEST and text.isascii() and text.isprintable() and "  " not in text
    escaped = html.escape(text.strip() if simple else format.plain(text, LONGEST))
    lead, tail = (" " if end.isspace() else "" for end in (text[:1], text[-1:]))
    return Html(f"{lead}{escaped}{tail}" if escaped else lead)


def escape_code(text: str) -> Html:
    """Escape source code; characters that cannot be seen, or that reorder a line, are shown by their number."""
    visible = "".join(
        character if character in _LINE_ENDS or unicodedata.category(character)[0] != "C" else _number(character)
        for character in text.replace("\r\n", "\n")
    )
    return Html(html.escape(visible))


def element(tag: str, *content: str | Iterable[str], **attributes: object) -> Html:
    """Return an element; content is escaped unless it is `Html`.

    Underscores in names of attributes stand for hyphens, and one at the end is dropped. An attribute of None is
    left out. A number has at most two decimals.
    """
    names = ((name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items())
    written = "".join(f' {name}="{_attribute(value)}"' for name, value in names if value is not None)
    inner = "".join(map(_content, content))
    return Html(f"<{tag}{written}>{inner}</{tag}>")


def slug(text: str) -> str:
    """Return the anchor of a heading, as code hosts derive it."""
    return re.sub(r"[^\w\- ]", "", text.casefold()).strip().replace(" ", "-")


def _attribute(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value) if isinstance(value, Html) else html.escape(str(value))


def _content(content: str | Iterable[str]) -> str:
    if isinstance(content, str):
        return content if isinstance(content, Html) else escape(content)
    return "".join(map(_content, content))


def _number(character: str) -> str:
    return f"\\u{ord(character):04x}"
