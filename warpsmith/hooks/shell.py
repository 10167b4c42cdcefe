"""Shell commands: the files that they plainly write, and if they drive a campaign or open a trial."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import pairwise

CAMPAIGN_COMMANDS = {"start", "resume", "select", "plan", "evaluate", "learn"}
"""Subcommands of warpsmith with which a session drives a campaign."""

ALL, LAST = slice(None), slice(-1, None)
WRITING = {
    "rm": ALL, "mv": ALL, "rmdir": ALL, "truncate": ALL, "touch": ALL, "chmod": ALL, "tee": ALL, "patch": ALL,
    "cp": LAST, "install": LAST, "ln": LAST, "rsync": LAST,
}  # fmt: skip
"""Programs that write, and which of their arguments they write to."""

IN_PLACE = ("sed", "perl")
"""Programs that write to all of their files with an option such as `-i`."""

_BREAKS = {";", "&", "&&", "|", "||", "(", ")", "\n"}


def drives_campaign(command: str) -> bool:
    """Return True if the command takes a step of a campaign."""
    return any(
        _program(words) == "warpsmith" and CAMPAIGN_COMMANDS & set(words[1:2])
        for words in _simple_commands(command)
    )


def opens_trial(command: str) -> bool:
    """Return True if the command opens a trial of a whole program."""
    return any(
        _program(words) == "warpsmith" and words[1:3] == ["program", "apply"]
        for words in _simple_commands(command)
    )


def written_files(command: str) -> list[str]:
    """Return the files that the command plainly writes: redirections, and arguments of programs that write."""
    return [
        name for words in _simple_commands(command) for name in (*_redirections(words), *_written_arguments(words))
    ]


def _simple_commands(command: str) -> Iterator[list[str]]:
    """Yield the words of each simple command of a line; a line that does not parse is split at blanks."""
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        words = command.split()
    simple: list[str] = []
    for word in words:
        if word in _BREAKS:
            yield simple
            simple = []
        else:
            simple.append(word)
    yield simple


def _program(words: list[str]) -> str:
    return words[0].rpartition("/")[2] if words else ""


def _redirections(words: list[str]) -> list[str]:
    signs = (">", ">>", ">|", "&>", "&>>", ">&")
    return [target for sign, target in pairwise(words) if sign in signs]


def _written_arguments(words: list[str]) -> list[str]:
    name, operands = _program(words), [word for word in words[1:] if not word.startswith("-")]
    if name in WRITING:
        return operands[WRITING[name]]
    if name in IN_PLACE and any(word.startswith(("-i", "-pi", "--in-place")) for word in words[1:]):
        return operands
    if name == "dd":
        return [word[3:] for word in operands if word.startswith("of=")]
    return []
