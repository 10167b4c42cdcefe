"""Names of agents and skills: every `warpsmith:<name>` exists, and every name is qualified."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.textlint.fields import split_words
from tools.textlint.finding import Finding
from tools.textlint.tree import PLUGIN, Tree

_QUALIFIED = re.compile(rf"(?<![\w.-]){PLUGIN}:([a-z0-9][a-z0-9-]*)")
_SUBAGENT = re.compile(r"""subagent_type["'`]?\s*[:=]\s*["'`]?([^\s"'`,)}]+)""")
_JSON_FOLDERS = (".claude/", ".claude-plugin/", "hooks/")
"""Folders with names in JSON files."""


def check_qualified_names(tree: Tree) -> Iterator[Finding]:
    """Yield every `warpsmith:<name>` that is neither an agent nor a skill."""
    names = {*tree.skills, *tree.agents}
    for path, line, text in _lines(tree):
        for name in _QUALIFIED.findall(text):
            if name not in names:
                yield Finding(
                    path,
                    line,
                    f"`{PLUGIN}:{name}` is neither an agent nor a skill",
                    "name one that exists, or add it",
                )


def check_subagent_types(tree: Tree) -> Iterator[Finding]:
    """Yield every `subagent_type` without the plugin's name, which Claude Code does not find."""
    for path, line, text in _lines(tree):
        for name in _SUBAGENT.findall(text):
            if not name.startswith((f"{PLUGIN}:", "<")):
                yield Finding(
                    path, line, f"the subagent_type `{name}` lacks the plugin's name", f"write `{PLUGIN}:<agent>`"
                )


def check_named_fields(tree: Tree) -> Iterator[Finding]:
    """Yield names in `skills:` of agents and `agent:` of skills that do not exist or cannot be used there."""
    for page in tree.agents.values():
        line = page.line_of_key("skills")
        for name in split_words(page.matter.get("skills")):
            skill = tree.skills.get(name.removeprefix(f"{PLUGIN}:"))
            if skill is None:
                yield Finding(page.path, line, f"there is no skill `{name}`", "name one under skills/")
            elif skill.matter.get("disable-model-invocation"):
                yield Finding(
                    page.path,
                    line,
                    f"`{name}` is for people only (disable-model-invocation)",
                    "preload another skill, or let the model use this one",
                )
    for page in tree.skills.values():
        agent = page.matter.get("agent")
        if agent and agent not in [f"{PLUGIN}:{name}" for name in tree.agents]:
            yield Finding(
                page.path,
                page.line_of_key("agent"),
                f"`{agent}` is not an agent, so another one runs",
                f"write `agent: {PLUGIN}:<name>` with a name under agents/",
            )


def _lines(tree: Tree) -> Iterator[tuple[str, int, str]]:
    paths = [page.path for page in tree.pages]
    paths += [path for path in tree.files if path.endswith(".json") and path.startswith(_JSON_FOLDERS)]
    for path in paths:
        for line, text in enumerate(tree.text(path).splitlines(), 1):
            if PLUGIN in text or "subagent_type" in text:
                yield path, line, text
