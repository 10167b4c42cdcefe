"""A campaign of the toy project, and a way to ask a hook as Claude Code does."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import campaign_kit as toys
import pytest

from warpsmith.hooks import run
from warpsmith.project import Project

toy_language = toys.toy_language
campaign = toys.campaign
Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made: Project = toys.make_project(tmp_path / "project")
    (made.root / "warpsmith.toml").write_text("")
    return made


@pytest.fixture
def kit() -> ModuleType:
    return toys


@pytest.fixture
def ask(project: Project, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Ask a hook about an event in the project; returns its answer."""
    monkeypatch.delenv(run.SWITCH, raising=False)

    def asked(name: str, **event: Any) -> dict[str, Any]:
        out = io.StringIO()
        data = {"cwd": str(project.root), "session_id": "session-1", **event}
        assert run.run_hook(name, io.StringIO(json.dumps(data)), out) == 0
        answer: dict[str, Any] = json.loads(out.getvalue() or "{}")
        return answer

    return asked


@pytest.fixture
def write(ask: Ask, project: Project) -> Callable[..., str]:
    """The guard's decision on a write: allow, ask or deny."""

    def decided(place: str, agent: str = "", tool: str = "Write") -> str:
        answer = ask(
            "guard", tool_name=tool, tool_input={"file_path": str(project.root / place)}, agent_type=agent
        )
        found: str = answer.get("hookSpecificOutput", {}).get("permissionDecision", "allow")
        return found

    return decided


@pytest.fixture
def at_work(campaign: Any, kit: ModuleType) -> Any:
    """Two rounds are closed; the third is at DESIGN."""
    script = kit.Script({"v1": "ACCEPT", "v2": "ROLLBACK", "v3": "ACCEPT"})
    script.round(campaign)
    script.round(campaign)
    script.until(campaign, "design")
    return campaign
