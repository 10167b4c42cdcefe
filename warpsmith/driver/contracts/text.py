"""Text of contracts: lines, lists and tables that Markdown gives back as they were written."""

from __future__ import annotations

import re
from collections.abc import Iterable

from warpsmith.core.line import line

NONE = "None."
"""What a section says that has nothing to list."""

ABSENT = "-"
"""A cell of a table that was not measured."""

OP, VERSION, SLUG = r"[a-z][a-z0-9_]{0,79}", r"[a-z][a-z0-9_]*/v[1-9][0-9]*", r"[a-z0-9][a-z0-9._-]{0,119}"
"""What an operator, a version, and a target or an entry are named like."""

_BLOCK = re.compile(r"^(\d{1,9}(?=[.)](?!\S)))|^(?=#{1,6}(?!\S)|[-+*](?!\S)|>|`{3}|~{3}|([-_*]\s*){3,}$)")
_SENTENCE_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bcf)(?<!\bapprox)[.!?]+(?=[\s)\"'*_]|$)")


def block(text: str) -> str:
    """A text as a paragraph or an item that Markdown does not take for another block."""
    return _BLOCK.sub(r"\1\\", line(text), count=1)


def table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [columns, ("---",) * len(columns), *([line(cell).replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def items(texts: Iterable[str]) -> str:
    """A bullet list."""
    return "\n".join(f"- {block(text)}" for text in texts)


def unquoted(text: str) -> str:
    """A name without the backticks around it."""
    return text[1:-1].strip() if len(text) > 2 and text[0] == text[-1] == "`" and "`" not in text[1:-1] else text


def sentences(text: str) -> int:
    """How many sentences a text has."""
    return len([part for part in _SENTENCE_END.split(text) if re.search(r"\w", part)])
