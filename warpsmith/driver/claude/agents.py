"""Load the plugin's agents: the page of an agent, and the skills that it preloads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import frontmatter

from warpsmith.errors import MissingInput

PLUGIN = "warpsmith"
"""Name of the plugin, which prefixes its agents and skills."""


@dataclass(frozen=True)
class Agent:
    """One agent of the plugin."""

    name: str
    """Stem of its file: `kernel-designer`."""
    description: str
    """Description of when to use it."""
    prompt: str
    """Its page and its skills. Claude Code preloads skills for subagents only, not for the main thread."""
    tools: tuple[str, ...]
    """Tools that its page lists."""
    model: str | None
    """Model that its page names, if any."""

    @property
    def address(self) -> str:
        """Return its name in Claude Code."""
        return f"{PLUGIN}:{self.name}"


def load_agent(plugin: Path, name: str, skills: Iterable[str] = ()) -> Agent:
    """Load an agent with the skills that its page preloads, and with `skills`.

    Raises:
        MissingInput: the plugin has no such agent or skill.
    """
    matter, body = _page(plugin / "agents" / f"{name}.md")
    names = dict.fromkeys((*_names(matter.get("skills")), *skills))
    pages = [_page(plugin / "skills" / skill / "SKILL.md")[1] for skill in names]
    return Agent(
        name=name,
        description=str(matter.get("description", "")),
        prompt="\n\n".join([body, *pages]),
        tools=tuple(_names(matter.get("tools"))),
        model=str(matter["model"]) if matter.get("model") else None,
    )


def _page(path: Path) -> tuple[dict[str, Any], str]:
    try:
        page = frontmatter.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MissingInput(f"{path} cannot be read ({error.strerror}); install Warpsmith again.") from error
    return page.metadata, page.content


def _names(value: object) -> list[str]:
    """Read a list of the front matter, or a text with commas."""
    names = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return [str(name).strip().removeprefix(f"{PLUGIN}:") for name in names]
