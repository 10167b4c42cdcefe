"""Lint: a tripwire that names what deserves a look. It refuses only what is certain."""

from __future__ import annotations

import re

from warpsmith.languages.base import Language

_GRADER = re.compile(r"^\s*(?:from|import)\s+(?:warpsmith|definition|kernels)\b.*$", re.MULTILINE)
_LOADER = re.compile(r"\b(?:dlopen|dlmopen|dlsym|dlvsym|PyRun_\w+|PyEval_\w+|PyImport_\w+)\b")
_GRADER_PATH = re.compile(r"definition\.py|warpsmith_definition|record\.json|verdict\.json")


def refusals(source: str) -> list[str]:
    """Why a solution is turned away without a run: it reaches for the grader, the reference or a library."""
    found = [f"line {_line(source, m.start())}: `{m.group().strip()}` reaches for the lab or the definition"
             for m in _GRADER.finditer(source)]  # fmt: skip
    found += [f"line {_line(source, m.start())}: `{m.group()}` reaches for code that is not the solution's own"
              for m in _LOADER.finditer(source)]  # fmt: skip
    return found + [f"line {_line(source, m.start())}: `{m.group()}` names a file of the grader"
                    for m in _GRADER_PATH.finditer(source)]  # fmt: skip


def findings(language: Language, source: str) -> list[str]:
    """What a reviewer and the probes should look at."""
    return language.findings(source)


def _line(source: str, position: int) -> int:
    return source.count("\n", 0, position) + 1
