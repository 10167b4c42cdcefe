"""Start the real Claude Code CLI against a scripted Messages API, in an environment made from nothing."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from messages_api import Actor, MessagesAPI

from tools.claude_cli import clean_env, cli_path

REPOSITORY = Path(__file__).resolve().parents[2]


def trust(home: Path, folder: Path) -> None:
    """What a person's 'Yes, I trust this folder' leaves behind; a project's plugins load only then."""
    path = home / ".claude" / ".claude.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    state = json.loads(path.read_text()) if path.exists() else {}
    state.setdefault("projects", {})[str(folder)] = {"hasTrustDialogAccepted": True}
    path.write_text(json.dumps(state))


@dataclass
class Result:
    """What a headless run left behind."""

    rc: int
    seconds: float
    events: list[dict[str, Any]]
    stderr: str
    api: MessagesAPI

    @property
    def init(self) -> dict[str, Any]:
        """The event that names what was loaded."""
        return next(e for e in self.events if e.get("subtype") == "init")

    @property
    def result(self) -> dict[str, Any]:
        """The last event."""
        return [e for e in self.events if e.get("type") == "result"][-1]


def run_claude(
    tmp: Path,
    prompt: str,
    actors: list[Actor],
    *args: str,
    plugin: Path | None = REPOSITORY,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    timeout: float = 120,
) -> Result:
    """One headless run; `tmp` gives it a fresh home."""
    cwd = cwd or tmp / "work"
    cwd.mkdir(parents=True, exist_ok=True)
    with MessagesAPI(actors) as api:
        loaded = ["--plugin-dir", str(plugin)] if plugin else []
        command = [cli_path(), "-p", "--output-format", "stream-json", "--verbose", *loaded, *args]
        began = time.monotonic()
        done = subprocess.run(
            command, input=prompt, cwd=cwd, env=clean_env(tmp / "home", api.url, **(env or {})),
            capture_output=True, text=True, timeout=timeout,
        )  # fmt: skip
        seconds = time.monotonic() - began
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return Result(done.returncode, seconds, events, done.stderr, api)
