"""A small repository in which the linter finds nothing, to break one thing at a time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.textlint.rules import lint
from tools.textlint.tree import Tree

SKILL = """---
name: optimize
description: Makes an operator faster. Use when a person asks for a faster kernel.
allowed-tools: Bash(warpsmith next *), Read
---
# Optimize

Run `warpsmith next`, then spawn `warpsmith:profiler`. Details: [levers](references/levers.md).
"""
AGENT = """---
name: profiler
description: Says what limits a version. Use after a version was judged.
tools: Read, Bash
model: haiku
maxTurns: 10
skills: [optimize]
---
Answer in the form that `warpsmith answer show profile` prints.
"""
HOOKS = {
    "hooks": {
        "SubagentStop": [
            {
                "matcher": "^warpsmith:profiler$",
                "hooks": [
                    {
                        "type": "command",
                        "command": '"${CLAUDE_PLUGIN_ROOT}"/bin/warpsmith hook answer',
                        "timeout": 10,
                    }
                ],
            }
        ]
    }
}
HOUSE: dict[str, str] = {
    "README.md": "# House\n\n## What it does\n\nSee [there](#what-it-does), [index](docs/knowledge/index.md).\n",
    "Makefile": "check:\n\ttrue\n",
    "pyproject.toml": '[project]\nversion = "1.2.3"\n',
    "bin/warpsmith": "#!/bin/sh\n",
    "docs/knowledge/index.md": "# Knowledge\n\n[A page](page.md)\n",
    "docs/knowledge/page.md": "# A page\n",
    "skills/optimize/SKILL.md": SKILL,
    "skills/optimize/references/levers.md": "# Levers\n",
    "agents/profiler.md": AGENT,
    "hooks/hooks.json": json.dumps(HOOKS, indent=2),
    ".claude-plugin/plugin.json": '{"name": "warpsmith"}',
    ".claude-plugin/marketplace.json": '{"name": "market", "plugins": [{"name": "warpsmith", "source": "./"}]}',
    ".claude/settings.json": '{"permissions": {"allow": ["Bash(warpsmith *)"]}}',
    "warpsmith/driver/answers/kinds.py": 'ANSWERS: dict[str, str] = {"profiler": "profile"}\n',
}


@dataclass
class House:
    """The repository; every change is a change on disk."""

    root: Path

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def change(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text(encoding="utf-8")
        assert old in text
        self.write(path, text.replace(old, new))

    def add(self, path: str, text: str) -> None:
        self.write(path, (self.root / path).read_text(encoding="utf-8") + text)

    def remove(self, path: str) -> None:
        (self.root / path).unlink()

    def found(self) -> list[str]:
        """What the whole linter finds."""
        return [str(finding) for finding in lint(Tree(self.root))]

    def one(self) -> str:
        """The one thing that the whole linter finds."""
        (only,) = self.found()
        return only


@pytest.fixture
def house(tmp_path: Path) -> House:
    made = House(tmp_path)
    for path, text in HOUSE.items():
        made.write(path, text)
    return made
