"""What a shell command plainly writes, and whether it drives a campaign or opens a trial."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import pairwise

STEPS = {"start", "resume", "select", "plan", "evaluate", "learn"}
"""Commands by which a session takes a campaign on."""

ALL, LAST = slice(None), slice(-1, None)
WRITING = {
    "rm": ALL, "mv": ALL, "rmdir": ALL, "truncate": ALL, "touch": ALL, "chmod": ALL, "tee": ALL, "patch": ALL,
    "cp": LAST, "install": LAST, "ln": LAST, "rsync": LAST,
}  # fmt: skip
"""Programs that write, and which of their arguments they write to."""
IN_PLACE = ("sed", "perl")
"""Programs that write to every file they are given when told to work in place."""

_BREAKS = {";", "&", "&&", "|", "||", "(", ")", "\n"}


def drives(command: str) -> bool:
    """Whether it finishes a step of a campaign."""
    return any(_name(words) == "warpsmith" and STEPS & set(words[1:2]) for words in _simple(command))


def tries(command: str) -> bool:
    """Whether it opens a trial of a whole program."""
    return any(_name(words) == "warpsmith" and words[1:3] == ["program", "apply"] for words in _simple(command))


def written(command: str) -> list[str]:
    """The files that it plainly writes to: redirections, and arguments of programs that write."""
    return [name for words in _simple(command) for name in (*_redirected(words), *_arguments(words))]


def _simple(command: str) -> Iterator[list[str]]:
    """The simple commands of a line; one that does not parse is split at blanks."""
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        words = command.split()
    one: list[str] = []
    for word in words:
        if word in _BREAKS:
            yield one
            one = []
        else:
            one.append(word)
    yield one


def _name(words: list[str]) -> str:
    return words[0].rpartition("/")[2] if words else ""


def _redirected(words: list[str]) -> list[str]:
    into = (">", ">>", ">|", "&>", "&>>", ">&")
    return [target for sign, target in pairwise(words) if sign in into]


def _arguments(words: list[str]) -> list[str]:
    name, given = _name(words), [word for word in words[1:] if not word.startswith("-")]
    if name in WRITING:
        return given[WRITING[name]]
    if name in IN_PLACE and any(word.startswith(("-i", "-pi", "--in-place")) for word in words[1:]):
        return given
    if name == "dd":
        return [word[3:] for word in given if word.startswith("of=")]
    return []
