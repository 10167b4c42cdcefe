"""Event: what Claude Code tells a hook; and the answers a hook can give."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Answer = dict[str, Any]
"""What a hook prints as JSON; empty: it has no objection."""

OURS = "warpsmith:"
"""What the names of this plugin's agents begin with."""


@dataclass(frozen=True)
class Event:
    """One call of a hook."""

    data: dict[str, Any]
    """The JSON on stdin."""

    @property
    def folder(self) -> Path:
        """Where the session works."""
        return Path(self._text("cwd") or ".")

    @property
    def session(self) -> str:
        """The session's id; empty where it is not given."""
        return self._text("session_id")

    @property
    def agent(self) -> str:
        """The subagent that acts, as `warpsmith:profiler`; empty in the main thread."""
        return self._text("agent_type")

    @property
    def ours(self) -> bool:
        """Whether one of this plugin's agents acts."""
        return self.agent.startswith(OURS)

    @property
    def tool(self) -> str:
        """The tool about to run."""
        return self._text("tool_name")

    def argument(self, name: str) -> str:
        """One argument of the tool; empty where it has none of that name."""
        given = self.data.get("tool_input")
        value = given.get(name) if isinstance(given, dict) else None
        return value if isinstance(value, str) else ""

    @property
    def sent_back(self) -> bool:
        """Whether a hook has sent this answer back before."""
        return self.data.get("stop_hook_active") is True

    @property
    def answer(self) -> str:
        """The agent's last message."""
        return self._text("last_assistant_message")

    def _text(self, name: str) -> str:
        value = self.data.get(name)
        return value if isinstance(value, str) else ""


def decide(decision: Literal["allow", "deny", "ask"], reason: str) -> Answer:
    """A tool runs without a question, must not run, or only if the person says so."""
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": f"Warpsmith: {reason}",
        }
    }


def send_back(reason: str) -> Answer:
    """The agent must not stop yet."""
    return {"decision": "block", "reason": f"Warpsmith: {reason}"}
