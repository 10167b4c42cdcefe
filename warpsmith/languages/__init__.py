"""Languages that versions are written in, one folder each behind one interface."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path

from warpsmith.errors import Misuse
from warpsmith.languages.base import Language, agent_name


@cache
def names() -> tuple[str, ...]:
    """Return the languages of the lab: the folders of this package that hold a `language.py`."""
    folders = [path.parent.name for root in __path__ for path in Path(root).glob("*/language.py")]
    return tuple(sorted(folders))


def get(name: str) -> Language:
    """Return the language of a name.

    Raises:
        Misuse: there is none.
    """
    if name not in names():
        raise Misuse(f"Unknown language `{name}`; the lab has: {', '.join(names())}.")
    language: Language = importlib.import_module(f"{__name__}.{name}.language").LANGUAGE
    return language


def agent_names() -> tuple[str, ...]:
    """Return the agents that write the languages, in the order of `names`, without importing any language."""
    return tuple(map(agent_name, names()))


def by_preference() -> list[Language]:
    """Return every language: first those that are proposed unasked, best first, then the others by name."""
    every = map(get, names())
    return sorted(
        every, key=lambda language: (language.preference is None, language.preference or 0, language.name)
    )


def recognise(path: str, text: str) -> str | None:
    """Return the language of a source file by its ending and its text; None if no language claims it.

    A pattern on the text outranks a bare ending. If several languages claim a file, the preferred one gets it.
    """
    claims = [
        (not pattern.text, rank, language.name)
        for rank, language in enumerate(by_preference())
        for pattern in language.source_patterns
        if Path(path).suffix.casefold() in pattern.suffixes and re.search(pattern.text, text, re.MULTILINE)
    ]
    return min(claims)[2] if claims else None


def choose_linter(path: str, text: str) -> Language | None:
    """Return the language whose lint reads a source file: its own, else the preferred one with such files."""
    name = recognise(path, text)
    if name is not None:
        return get(name)
    return next((language for language in by_preference() if path.endswith(language.suffix)), None)
