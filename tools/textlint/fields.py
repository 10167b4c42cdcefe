"""The front matter of skills and agents: strict YAML, known fields, and descriptions that say when."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from tools.textlint import claude_code, schema
from tools.textlint.finding import Finding, of_error
from tools.textlint.page import Page
from tools.textlint.tree import Tree

_TOOL = re.compile(r"([\w*-]+)(?:\([^()]*\))?")
_WHEN = re.compile(r"\buse (?:to|for)\b|\b(?:when|whenever|after|before|once)\b", re.IGNORECASE)


def skills(tree: Tree) -> Iterator[Finding]:
    """What is wrong with the front matter of a SKILL.md."""
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


def agents(tree: Tree) -> Iterator[Finding]:
    """What is wrong with the front matter of an agent."""
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
                yield _finding(page, field, f"`{field}` does nothing in a plugin's agent", "remove it")
        yield from _tools(page, "tools", "disallowedTools")


def words(value: object) -> list[str]:
    """A field that is a list, or one text with commas."""
    if isinstance(value, str):
        return [word for word in re.split(r"[\s,]+", value) if word]
    return [str(word) for word in value] if isinstance(value, list) else []


def _matter(page: Page, name: str, model: type[BaseModel]) -> Iterator[Finding]:
    if page.matter_error:
        yield of_error(page.path, page.matter_error)
        return
    known = {key: value for key, value in page.matter.items() if key not in claude_code.IGNORED_IN_AGENTS}
    data: dict[str, Any] = known if model is claude_code.AgentMatter else page.matter
    yield from schema.misfits(page.path, data, model, page.line_of_key)
    if page.matter.get("name") != name:
        yield _finding(page, "name", f"the name is not `{name}`, as the file is called", f"write `name: {name}`")


def _tools(page: Page, *fields: str) -> Iterator[Finding]:
    for field in fields:
        listed = page.matter.get(field) or ()
        for tool in _TOOL.findall(listed if isinstance(listed, str) else " ".join(map(str, listed))):
            if tool not in claude_code.TOOLS and not tool.startswith("mcp__"):
                yield _finding(page, field, f"there is no tool `{tool}`", "write a name that Claude Code has")


def _description(page: Page) -> str:
    return str(page.matter.get("description", "")) if not page.matter_error else "Use when"


def _finding(page: Page, key: str, wrong: str, fix: str) -> Finding:
    return Finding(page.path, page.line_of_key(key), wrong, fix)
