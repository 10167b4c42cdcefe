"""A hook runs at every tool use, so it imports little, and answers within 150 ms on a usual machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

MOST_MODULES = 170
"""A shell command takes about 150, most of them Python's own; `asyncio` or `pydantic` alone would exceed it."""

LIST_MODULES = f"""
import atexit, sys
sys.path[:] = {sys.path}
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from warpsmith.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("name", "event", "libraries"),
    [
        ("guard", {"tool_name": "Write", "tool_input": {"file_path": "devlog/x"}}, set()),
        ("guard", {"tool_name": "Read", "tool_input": {"file_path": "devlog/x"}}, set()),
        (
            "guard",
            {"tool_name": "Bash", "tool_input": {"command": "rm devlog/x"}},
            {"tree_sitter", "tree_sitter_bash"},
        ),
        ("stop", {}, set()),
        ("session", {}, set()),
        ("answer", {"agent_type": "other:reviewer"}, set()),
    ],
)
def test_a_hook_imports_little(project, campaign, name: str, event: dict[str, Any], libraries: set[str]):
    """Modules are counted, since even the processor's time depends on what else the machine does."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", LIST_MODULES, "hook", name],  # -S: an environment imports modules of its own
        input=json.dumps({"cwd": str(project.root), "session_id": "s", **event}),
        env={key: value for key, value in os.environ.items() if key != "WARPSMITH_HOOKS"},
        text=True,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert ("deny" in done.stdout) == (event.get("tool_name") in ("Write", "Bash")), done.stdout
    modules = done.stderr.split()
    packages = {module.partition(".")[0] for module in modules} - {"__main__", "warpsmith"}
    assert packages - sys.stdlib_module_names <= libraries
    assert len(modules) < MOST_MODULES
