"""Lint of a source: a tripwire that notes what deserves a look, and refuses only what is certain."""

from __future__ import annotations

import re

from warpsmith.languages.base import Language

_LAB = r"(?:warpsmith|definition|kernels)\b"
_LAB_IMPORT = re.compile(  # a statement, not a line of prose that begins with one of its words
    rf"^\s*(?:from\s+{_LAB}(?:[\s\\]*\.[\s\\]*\w+)*[\s\\]+import\b|import\s+{_LAB}(?![ \t]+(?!as\b)\w)).*$",
    re.MULTILINE,
)
_LOADER = re.compile(r"\b(?:dlopen|dlmopen|dlsym|dlvsym|PyRun_\w+|PyEval_\w+|PyImport_\w+)\b")
_GRADER_FILE = re.compile(r"definition\.py|warpsmith_definition|record\.json|verdict\.json")

_REFUSALS = (
    (_LAB_IMPORT, "reaches for the lab or the definition"),
    (_LOADER, "reaches for code that is not the solution's own"),
    (_GRADER_FILE, "names a file of the grader"),
)


def list_refusals(source: str) -> list[str]:
    """List the reasons to refuse a source unrun: it reaches for the grader, the reference or a library."""
    return [
        f"line {_line_of(source, match.start())}: `{match.group().strip()}` {reason}"
        for pattern, reason in _REFUSALS
        for match in pattern.finditer(source)
    ]


def list_lint_notes(language: Language, source: str) -> list[str]:
    """List what a reviewer and the probes should look at."""
    return language.findings(source)


def _line_of(source: str, position: int) -> int:
    return source.count("\n", 0, position) + 1
