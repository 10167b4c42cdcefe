"""Languages that solutions are written in, one folder each behind one small interface."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path

from warpsmith.errors import Misuse
from warpsmith.languages.base import Language


@cache
def names() -> tuple[str, ...]:
    """The languages that the lab has: the folders of this package that hold a `language.py`."""
    return tuple(sorted(path.parent.name for path in Path(__file__).parent.glob("*/language.py")))


def get(name: str) -> Language:
    """The language of that name.

    Raises:
        Misuse: there is none.
    """
    if name not in names():
        raise Misuse(f"Unknown language `{name}`; the lab has: {', '.join(names())}.")
    language: Language = importlib.import_module(f"{__name__}.{name}.language").LANGUAGE
    return language
