"""Commands in texts: every `warpsmith ...` exists and has its options, and every target of make exists."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator

from tools.textlint.finding import Finding
from tools.textlint.program import Command, read_program
from tools.textlint.shell import ANY, Call, find_calls
from tools.textlint.tree import PLUGIN, Tree
from tools.textlint.uses import find_markdown_uses, find_uses

_PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9_.-]*|\.\.\.|\$.*|.*[*…].*")
"""Word that stands for another one: NAME, `...`, $1, `*`."""
_OPTIONAL = {ANY, "...", "*"}
"""Words that may stand for no argument at all."""
_NEGATIVE = re.compile(r"-\d")
_NAME = re.compile(r"[a-z][\w.-]*")
"""Name of a target, as opposed to a flag, a variable or a placeholder."""
_TARGET = re.compile(r"^([A-Za-z][\w.-]*)\s*:(?!=)", re.MULTILINE)

CallProblem = tuple[str, str]
"""The problem and its fix."""


def check_commands(tree: Tree) -> Iterator[Finding]:
    """Yield calls of `warpsmith` with an unknown command or option."""
    for use in find_uses(tree):
        for call in find_calls(use.text, PLUGIN):
            if problem := call_problem(call):
                yield Finding(use.path, use.line + call.line - 1, *problem)


def check_make_targets(tree: Tree) -> Iterator[Finding]:
    """Yield calls of make whose target is not in the Makefile."""
    targets = set(_TARGET.findall(tree.text("Makefile"))) if tree.has("Makefile") else set()
    fix = f"write one of {', '.join(sorted(targets)) or 'none'}"
    for use in find_markdown_uses(tree):
        for call in find_calls(use.text, "make"):
            for word in call.words:
                if _NAME.fullmatch(word) and word not in targets:
                    yield Finding(use.path, use.line + call.line - 1, f"the Makefile has no target `{word}`", fix)


def call_problem(call: Call) -> CallProblem | None:
    """Return the problem of a call of `warpsmith` and its fix; None if it is correct."""
    words = [word for raw in call.words if (word := raw.strip("[](){}"))]
    candidates = [read_program()]
    while words and candidates[0].commands and not words[0].startswith("-"):
        word = words.pop(0)
        if _PLACEHOLDER.fullmatch(word):
            return None
        subcommands = candidates[0].commands
        for name in word.split("|"):
            if name not in subcommands:
                return _unknown(candidates[0], "command", name, subcommands)
        candidates = [subcommands[name] for name in word.split("|")]
    return _arguments(candidates, words)


def _arguments(candidates: list[Command], words: list[str]) -> CallProblem | None:
    """Return the problem of the options and arguments of a command, or of one of several alternatives."""
    options = {flag: follows for command in candidates for flag, follows in command.options.items()}
    count, waiting = 0, False
    for word in words:
        if word == "--":
            break
        if word.startswith("-") and not (waiting and _NEGATIVE.match(word)):
            flags = [flag for flag in word.partition("=")[0].split("|") if flag.startswith("-")]
            for flag in flags:
                if flag not in options:
                    return _unknown(candidates[0], "option", flag, options)
            waiting = options[flags[-1]] and "=" not in word
        else:
            count += not waiting and word not in _OPTIONAL
            waiting = False
    limit = max(command.arguments for command in candidates)
    name = candidates[0].name
    return (f"`{name}` takes {limit:g} arguments, not {count}", f"see `{name} --help`") if count > limit else None


def _unknown(command: Command, kind: str, word: str, choices: Collection[str]) -> CallProblem:
    similar = difflib.get_close_matches(word, choices, n=1)
    fix = f"write `{similar[0]}`" if similar else f"see `{command.name} --help`"
    return f"`{command.name}` has no {kind} `{word}`", fix
