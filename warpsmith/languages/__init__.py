"""Languages that solutions are written in, one module each behind one small interface."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path

from warpsmith.errors import Misuse
from warpsmith.languages.base import Language

_HOLDS_LANGUAGE = re.compile(r"^LANGUAGE\b", re.MULTILINE)


@cache
def names() -> tuple[str, ...]:
    """The languages that the lab has: the modules of this package that hold a `LANGUAGE`."""
    modules = Path(__file__).parent.glob("*.py")
    return tuple(sorted(m.stem for m in modules if _HOLDS_LANGUAGE.search(m.read_text(encoding="utf-8"))))


def get(name: str) -> Language:
    """The language of that name.

    Raises:
        Misuse: there is none.
    """
    if name not in names():
        raise Misuse(f"Unknown language `{name}`; the lab has: {', '.join(names())}.")
    language: Language = importlib.import_module(f"{__name__}.{name}").LANGUAGE
    return language
