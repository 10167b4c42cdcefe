"""Front matter of skills and agents: strict YAML, known fields, and descriptions that say when to use them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from tools.textlint import claude_code
from tools.textlint.finding import Finding, convert_error
from tools.textlint.page import MarkdownPage
from tools.textlint.schema import check_model
from tools.textlint.tree import Tree

_TOOL = re.compile(r"([\w*-]+)(?:\([^()]*\))?")
_WHEN = re.compile(r"\buse (?:to|for)\b|\b(?:when|whenever|after|before|once)\b", re.IGNORECASE)


def check_skills(tree: Tree) -> Iterator[Finding]:
    """Yield the problems of the front matter of every SKILL.md."""
    for name, page in tree.skills.items():
        yield from _matter(page, name, claude_code.SkillMatter)
        if not re.search(r"\buse when\b", _description(page), re.IGNORECASE):
            yield _finding(
                page,
                "description",
                "the description does not say when to use the skill",
                "add a sentence that begins with `Use when`",
            )
        yield from _tools(page, "allowed-tools", "disallowed-tools")


def check_agents(tree: Tree) -> Iterator[Finding]:
    """Yield the problems of the front matter of every agent."""
    for name, page in tree.agents.items():
        yield from _matter(page, name, claude_code.AgentMatter)
        if not _WHEN.search(_description(page)):
            yield _finding(
                page,
                "description",
                "the description does not say when to call the agent",
                "add when, such as `Use after a version was judged`",
            )
        for field in claude_code.IGNORED_IN_AGENTS:
            if field in page.matter:
                yield _finding(page, field, f"`{field}` has no effect in a plugin's agent", "remove it")
        yield from _tools(page, "tools", "disallowedTools")


def split_words(value: object) -> list[str]:
    """Return the words of a field that is a list or one text with commas."""
    if isinstance(value, str):
        return [word for word in re.split(r"[\s,]+", value) if word]
    return [str(word) for word in value] if isinstance(value, list) else []


def _matter(page: MarkdownPage, name: str, model: type[BaseModel]) -> Iterator[Finding]:
    if page.matter_error:
        yield convert_error(page.path, page.matter_error)
        return
    fields = {key: value for key, value in page.matter.items() if key not in claude_code.IGNORED_IN_AGENTS}
    data: dict[str, Any] = fields if model is claude_code.AgentMatter else page.matter
    yield from check_model(page.path, data, model, page.line_of_key)
    if page.matter.get("name") != name:
        yield _finding(page, "name", f"the name is not `{name}`, the name of the file", f"write `name: {name}`")


def _tools(page: MarkdownPage, *fields: str) -> Iterator[Finding]:
    for field in fields:
        listed = page.matter.get(field) or ()
        for tool in _TOOL.findall(listed if isinstance(listed, str) else " ".join(map(str, listed))):
            if tool not in claude_code.TOOLS and not tool.startswith("mcp__"):
                yield _finding(page, field, f"there is no tool `{tool}`", "write a name that Claude Code has")


def _description(page: MarkdownPage) -> str:
    return str(page.matter.get("description", "")) if not page.matter_error else "Use when"


def _finding(page: MarkdownPage, key: str, problem: str, fix: str) -> Finding:
    return Finding(page.path, page.line_of_key(key), problem, fix)
