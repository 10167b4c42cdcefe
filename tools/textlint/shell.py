"""Shell as documents write it: the calls of a program, as words, with placeholders left as they are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

ANY = "…"
"""A word that stands for whatever fits."""

_PLACEHOLDER = re.compile(r"<[A-Za-z][^<>|\n]*>")
_INNER = re.compile(r"\$\(([^()]*)\)")
_ASSIGNMENT = re.compile(r"\w+=.*")
_BREAKS = {"|", "||", "&&", "&", ";", ">", ">>", "<", "2>", "2>&1", "then", "do", "else", "done", "fi"}
_BEFORE = {"$", "!", "if", "while", "until", "time", "env", "exec", "sudo", "nohup", "command", "("}


class Call(NamedTuple):
    """One call of a program."""

    line: int
    """From 1, within the text."""
    words: list[str]
    """What follows the program's name."""


def calls(text: str, program: str) -> Iterator[Call]:
    """Every call of `program` in a piece of shell, also inside `$(...)`; `.venv/bin/program` counts."""
    for line, logical in _logical(text):
        if program not in logical:
            continue
        for piece in (logical, *_INNER.findall(logical)):
            for words in _simple(piece):
                if words[0].rsplit("/", 1)[-1] == program:
                    yield Call(line, words[1:])


def without_placeholders(text: str) -> str:
    """The same shell with `<name>` as a plain word, so that it parses."""
    return _PLACEHOLDER.sub("X", text)


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations, each with the number of its first."""
    start, parts = 1, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        start = start if parts else number
        parts.append(line.removesuffix("\\"))
        if not line.endswith("\\"):
            yield start, " ".join(parts)
            parts = []
    if parts:
        yield start, " ".join(parts)


def _simple(line: str) -> Iterator[list[str]]:
    """The simple commands of a line, without what stands before a program's name."""
    current: list[str] = []
    for word in [*_words(_PLACEHOLDER.sub(ANY, line)), ";"]:
        ends = word.endswith(";")
        if word in _BREAKS or ends:
            current += [word.rstrip(";")] if word.strip(";") and word not in _BREAKS else []
            if current:
                yield current
            current = []
        elif current or not (word in _BEFORE or _ASSIGNMENT.fullmatch(word)):
            current.append(word)


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="")
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:  # a quote that a later line closes
        return line.split()
