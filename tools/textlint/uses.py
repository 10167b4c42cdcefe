"""Texts that contain commands: Markdown, permissions, hooks, and the messages of the package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tools.textlint.schema import line_of_value, read_json
from tools.textlint.shell import ANY
from tools.textlint.tree import PLUGIN, Tree

_SHELL = {"bash", "sh", "shell", "console", "!", ""}
_PERMITTED = re.compile(r"Bash\(([^()]*)\)")
_QUOTED = re.compile(rf"`({PLUGIN} [^`\n]*)`")
_FILLED = re.compile(r"\{\{.*?\}\}|\{[^{}]*\}")
"""Parts that a template or an f-string fills in."""


class Use(NamedTuple):
    """A piece of text that may contain commands."""

    path: str
    line: int
    text: str


def find_uses(tree: Tree) -> Iterator[Use]:
    """Yield every text that may contain calls of `warpsmith`."""
    yield from find_markdown_uses(tree)
    for page in (*tree.skills.values(), *tree.agents.values()):
        for field in ("allowed-tools", "tools"):
            for text in _PERMITTED.findall(str(page.matter.get(field))):
                yield Use(page.path, page.line_of_key(field), text)
    yield from _settings(tree)
    yield from _messages(tree)


def find_markdown_uses(tree: Tree) -> Iterator[Use]:
    """Yield inline code and shell blocks in Markdown."""
    for page in tree.pages:
        for line, text in page.codes:
            yield Use(page.path, line, text)
        for block in page.blocks:
            if block.language in _SHELL:
                yield Use(page.path, block.line, block.text)


def _settings(tree: Tree) -> Iterator[Use]:
    """Yield permissions in the settings, and commands of the hooks."""
    for path in (".claude/settings.json", "hooks/hooks.json"):
        if not tree.has(path):
            continue
        for text in _strings(read_json(tree, path)):
            for command in _PERMITTED.findall(text) or [text]:
                yield Use(path, line_of_value(tree.text(path), text), command)


def _messages(tree: Tree) -> Iterator[Use]:
    """Yield `warpsmith ...` in backticks in the package's messages, which tell readers to run it."""
    for path in tree.files:
        if path.startswith(f"{PLUGIN}/") and path.endswith((".py", ".j2")):
            for number, line in enumerate(tree.text(path).splitlines(), 1):
                for text in _QUOTED.findall(line) if PLUGIN in line else ():
                    yield Use(path, number, _FILLED.sub(ANY, text))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)
