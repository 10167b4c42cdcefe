"""Shell in documents: finds the calls of a program, as words, with placeholders left as they are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

ANY = "…"
"""Word that stands for any other word."""

_PLACEHOLDER = re.compile(r"<[A-Za-z][^<>|\n]*>")
_INNER = re.compile(r"\$\(([^()]*)\)")
_ASSIGNMENT = re.compile(r"\w+=.*")
_BREAKS = {"|", "||", "&&", "&", ";", ">", ">>", "<", "2>", "2>&1", "then", "do", "else", "done", "fi"}
_BEFORE = {"$", "!", "if", "while", "until", "time", "env", "exec", "sudo", "nohup", "command", "("}


class Call(NamedTuple):
    """One call of a program in a text."""

    line: int
    """Line in the text, from 1."""
    words: list[str]
    """Words after the program's name."""


def find_calls(text: str, program: str) -> Iterator[Call]:
    """Yield every call of `program` in shell text, also inside `$(...)`; `.venv/bin/program` counts."""
    for line, logical in _logical_lines(text):
        if program not in logical:
            continue
        for piece in (logical, *_INNER.findall(logical)):
            for words in _simple_commands(piece):
                if words[0].rsplit("/", 1)[-1] == program:
                    yield Call(line, words[1:])


def replace_placeholders(text: str) -> str:
    """Return shell text with `<name>` replaced by a plain word, so that it parses."""
    return _PLACEHOLDER.sub("X", text)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines joined with their continuations, each with the number of its first line."""
    start, parts = 1, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        start = start if parts else number
        parts.append(line.removesuffix("\\"))
        if not line.endswith("\\"):
            yield start, " ".join(parts)
            parts = []
    if parts:
        yield start, " ".join(parts)


def _simple_commands(line: str) -> Iterator[list[str]]:
    """Yield the simple commands of a line, without words before a program's name."""
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
    except ValueError:  # a quote that is closed on a later line
        return line.split()
