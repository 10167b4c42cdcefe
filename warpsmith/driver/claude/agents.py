"""The plugin's agents as they ship: an agent's page, with the skills that it preloads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import frontmatter

from warpsmith.errors import MissingInput

PLUGIN = "warpsmith"
"""The plugin's name, which its agents and skills are addressed by."""


@dataclass(frozen=True)
class Agent:
    """One agent of the plugin."""

    name: str
    """Its file's name: `kernel-designer`."""
    description: str
    """When to ask it."""
    prompt: str
    """Its page, then its skills: Claude Code preloads skills for subagents only, not for the main thread."""
    tools: tuple[str, ...]
    """The tools that its page names."""
    model: str | None
    """The model that its page names."""

    @property
    def address(self) -> str:
        """As Claude Code knows it."""
        return f"{PLUGIN}:{self.name}"


def load(plugin: Path, name: str, skills: Iterable[str] = ()) -> Agent:
    """An agent, with skills beside those that its page preloads.

    Raises:
        MissingInput: the plugin does not hold it, or not the skill.
    """
    matter, body = _page(plugin / "agents" / f"{name}.md")
    wanted = dict.fromkeys((*_names(matter.get("skills")), *skills))
    pages = [_page(plugin / "skills" / skill / "SKILL.md")[1] for skill in wanted]
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
        raise MissingInput(f"{path} does not read ({error.strerror}); install Warpsmith again.") from error
    return page.metadata, page.content


def _names(value: object) -> list[str]:
    """A list of the front matter, or one text with commas."""
    names = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return [str(name).strip().removeprefix(f"{PLUGIN}:") for name in names]
