"""One thing that is wrong in a text, and what to do about it."""

from __future__ import annotations

import re
from typing import NamedTuple

from warpsmith.errors import WarpsmithError


class Finding(NamedTuple):
    """What is wrong, where, and what to do; sorts by place."""

    path: str
    """Relative to the root, with forward slashes."""
    line: int
    """From 1."""
    wrong: str
    """What is wrong: a clause without a full stop."""
    fix: str
    """What to do: a clause without a full stop."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.wrong}. Fix: {self.fix}."


_SENTENCE = re.compile(r"(?::(?P<line>\d+))?:? *(?P<wrong>.*); (?P<fix>[^;]*)", re.DOTALL)


def of_error(path: str, error: WarpsmithError) -> Finding:
    """An error of the package, which is one sentence `path:line: what is wrong; what to do.`"""
    text = str(error).removeprefix(path).rstrip(".")
    if parts := _SENTENCE.fullmatch(text):
        return Finding(path, int(parts["line"] or 1), parts["wrong"], parts["fix"])
    return Finding(path, 1, text.strip(" :"), "mend it")


def line_of(text: str, needle: str) -> int:
    """The line on which `needle` first stands; 1 where it does not."""
    return text.count("\n", 0, max(0, text.find(needle))) + 1
