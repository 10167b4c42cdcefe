"""Languages that solutions are written in, one module each behind one small interface."""

from __future__ import annotations

import importlib
import pkgutil

from warpsmith.errors import Misuse
from warpsmith.languages.base import Language

_NOT_LANGUAGES = {
    "base",
    "tool",
    "signature",
    "cpp_call",
    "cpp_source",
    "triton_compile",
    "triton_pretend",
    "triton_source",
}


def names() -> list[str]:
    """The languages that the lab has: one a module of this package."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name not in _NOT_LANGUAGES)


def get(name: str) -> Language:
    """The language of that name.

    Raises:
        Misuse: there is none.
    """
    if name not in names():
        raise Misuse(f"Unknown language `{name}`; the lab has: {', '.join(names())}.")
    language: Language = importlib.import_module(f"{__name__}.{name}").LANGUAGE
    return language
