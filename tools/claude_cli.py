"""Run the real Claude Code CLI in an empty environment: `python -m tools.claude_cli plugin validate .`"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CLOSED = "http://127.0.0.1:9"
"""Closed port that all traffic except loopback is sent to."""
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
    "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",  # a subagent ends before its parent's next turn: a fixed order
    "HTTPS_PROXY": CLOSED,
    "HTTP_PROXY": CLOSED,
    "NO_PROXY": "127.0.0.1,localhost",
}


@functools.cache
def cli_path() -> str:
    """Return the path of the CLI in the pinned claude-agent-sdk wheel."""
    import claude_agent_sdk

    return str(Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude")


def clean_env(home: Path, url: str, **extra: str) -> dict[str, str]:
    """Return an environment that inherits only PATH: no key, no token, no settings of the user.

    The virtual environment of the tests is active in it; `warpsmith` itself is found as in a user's session.
    """
    home.mkdir(parents=True, exist_ok=True)
    path = [folder for folder in os.environ.get("PATH", "/usr/bin:/bin").split(":") if folder]
    return {
        "PATH": ":".join(folder for folder in path if not Path(folder, "warpsmith").exists()),
        "VIRTUAL_ENV": sys.prefix,
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "SHELL": "/bin/bash",
        "TMPDIR": str(home),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-ant-fake-not-a-key",
        **QUIET,
        **extra,
    }


def claude_command(home: Path, *args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a subcommand that needs no model; its API address is a closed port."""
    return subprocess.run(
        [cli_path(), *args], cwd=cwd, env=clean_env(home, CLOSED),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def main() -> None:
    """Run the subcommand in the arguments, and pass on its output and exit code."""
    with tempfile.TemporaryDirectory(prefix="claude-home-") as home:
        process = claude_command(Path(home), *sys.argv[1:])
    sys.stdout.write(process.stdout)
    sys.stderr.write(process.stderr)
    sys.exit(process.returncode)


if __name__ == "__main__":
    main()
