"""A finding: one problem in a text, with its fix."""

from __future__ import annotations

import re
from typing import NamedTuple

from warpsmith.errors import WarpsmithError


class Finding(NamedTuple):
    """One problem with its location and fix; findings sort by location."""

    path: str
    """Path relative to the root, with forward slashes."""
    line: int
    """Line number, from 1."""
    problem: str
    """The problem, as a clause without a full stop."""
    fix: str
    """The fix, as a clause without a full stop."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.problem}. Fix: {self.fix}."


_SENTENCE = re.compile(r"(?::(?P<line>\d+))?:? *(?P<problem>.*); (?P<fix>[^;]*)", re.DOTALL)


def convert_error(path: str, error: WarpsmithError) -> Finding:
    """Convert an error of the package, one sentence `path:line: problem; fix.`, into a finding."""
    text = str(error).removeprefix(path).rstrip(".")
    if parts := _SENTENCE.fullmatch(text):
        return Finding(path, int(parts["line"] or 1), parts["problem"], parts["fix"])
    return Finding(path, 1, text.strip(" :"), "fix it")


def line_of(text: str, needle: str) -> int:
    """Return the first line that contains `needle`; 1 if none does."""
    return text.count("\n", 0, max(0, text.find(needle))) + 1
