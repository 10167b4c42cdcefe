"""Every `warpsmith ...` in the texts is a command that exists, with options that it has; so are make's targets."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator

from tools.textlint.finding import Finding
from tools.textlint.program import Command, program
from tools.textlint.shell import ANY, Call, calls
from tools.textlint.tree import PLUGIN, Tree
from tools.textlint.uses import uses, written

_HOLDER = re.compile(r"[A-Z][A-Z0-9_.-]*|\.\.\.|\$.*|.*[*…].*")
"""A word that stands for another: NAME, `...`, $1, `*`."""
_REST = {ANY, "...", "*"}
"""What may stand for no argument at all."""
_NEGATIVE = re.compile(r"-\d")
_NAME = re.compile(r"[a-z][\w.-]*")
"""A target's name, not a flag, a variable or a placeholder."""
_TARGET = re.compile(r"^([A-Za-z][\w.-]*)\s*:(?!=)", re.MULTILINE)

Problem = tuple[str, str]
"""What is wrong and what to do."""


def commands(tree: Tree) -> Iterator[Finding]:
    """Calls of `warpsmith` that name no command, or an option that it lacks."""
    for use in uses(tree):
        for call in calls(use.text, PLUGIN):
            if problem := wrong(call):
                yield Finding(use.path, use.line + call.line - 1, *problem)


def targets(tree: Tree) -> Iterator[Finding]:
    """Calls of make whose target the Makefile lacks."""
    known = set(_TARGET.findall(tree.text("Makefile"))) if tree.has("Makefile") else set()
    fix = f"write one of {', '.join(sorted(known)) or 'none'}"
    for use in written(tree):
        for call in calls(use.text, "make"):
            for word in call.words:
                if _NAME.fullmatch(word) and word not in known:
                    yield Finding(use.path, use.line + call.line - 1, f"the Makefile has no target `{word}`", fix)


def wrong(call: Call) -> Problem | None:
    """What is wrong with a call of `warpsmith` and what to do; None where nothing is."""
    words = [word for raw in call.words if (word := raw.strip("[](){}"))]
    named = [program()]
    while words and named[0].commands and not words[0].startswith("-"):
        word = words.pop(0)
        if _HOLDER.fullmatch(word):
            return None
        known = named[0].commands
        for one in word.split("|"):
            if one not in known:
                return _unknown(named[0], "command", one, known)
        named = [known[one] for one in word.split("|")]
    return _arguments(named, words)


def _arguments(named: list[Command], words: list[str]) -> Problem | None:
    """What is wrong with the options and arguments of a command, or of one of several."""
    options = {flag: follows for command in named for flag, follows in command.options.items()}
    given, waiting = 0, False
    for word in words:
        if word == "--":
            break
        if word.startswith("-") and not (waiting and _NEGATIVE.match(word)):
            flags = [one for one in word.partition("=")[0].split("|") if one.startswith("-")]
            for flag in flags:
                if flag not in options:
                    return _unknown(named[0], "option", flag, options)
            waiting = options[flags[-1]] and "=" not in word
        else:
            given += not waiting and word not in _REST
            waiting = False
    most = max(command.arguments for command in named)
    name = named[0].name
    return (f"`{name}` takes {most:g} arguments, not {given}", f"see `{name} --help`") if given > most else None


def _unknown(command: Command, kind: str, word: str, known: Collection[str]) -> Problem:
    near = difflib.get_close_matches(word, known, n=1)
    fix = f"write `{near[0]}`" if near else f"see `{command.name} --help`"
    return f"`{command.name}` has no {kind} `{word}`", fix
