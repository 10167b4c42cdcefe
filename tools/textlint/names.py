"""Names of agents and skills: every `warpsmith:<name>` is there, and nothing is called by half a name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.textlint.fields import words
from tools.textlint.finding import Finding
from tools.textlint.tree import PLUGIN, Tree

_QUALIFIED = re.compile(rf"(?<![\w.-]){PLUGIN}:([a-z0-9][a-z0-9-]*)")
_SUBAGENT = re.compile(r"""subagent_type["'`]?\s*[:=]\s*["'`]?([^\s"'`,)}]+)""")
_SPOKEN = (".claude/", ".claude-plugin/", "hooks/")
"""Where names stand in JSON."""


def qualified(tree: Tree) -> Iterator[Finding]:
    """`warpsmith:<name>` that is neither an agent nor a skill."""
    known = {*tree.skills, *tree.agents}
    for path, line, text in _lines(tree):
        for name in _QUALIFIED.findall(text):
            if name not in known:
                yield Finding(
                    path,
                    line,
                    f"`{PLUGIN}:{name}` is neither an agent nor a skill",
                    "name one that exists, or add it",
                )


def subagents(tree: Tree) -> Iterator[Finding]:
    """A `subagent_type` without the plugin's name: Claude Code does not find it."""
    for path, line, text in _lines(tree):
        for name in _SUBAGENT.findall(text):
            if not name.startswith((f"{PLUGIN}:", "<")):
                yield Finding(
                    path, line, f"the subagent_type `{name}` lacks the plugin's name", f"write `{PLUGIN}:<agent>`"
                )


def fields(tree: Tree) -> Iterator[Finding]:
    """`skills:` of agents and `agent:` of skills that name nothing, or what cannot be used there."""
    for page in tree.agents.values():
        line = page.line_of_key("skills")
        for name in words(page.matter.get("skills")):
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
                f"`{agent}` is no agent, so another one runs",
                f"write `agent: {PLUGIN}:<name>` with a name under agents/",
            )


def _lines(tree: Tree) -> Iterator[tuple[str, int, str]]:
    paths = [page.path for page in tree.pages]
    paths += [path for path in tree.files if path.endswith(".json") and path.startswith(_SPOKEN)]
    for path in paths:
        for line, text in enumerate(tree.text(path).splitlines(), 1):
            if PLUGIN in text or "subagent_type" in text:
                yield path, line, text
