"""Event that Claude Code sends to a hook, the writes that it would do, and the answers that a hook can give."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Answer = dict[str, Any]
"""JSON that a hook prints; empty: no objection."""

PLUGIN_PREFIX = "warpsmith:"
"""Beginning of the names of this plugin's agents."""


@dataclass(frozen=True)
class HookEvent:
    """One call of a hook."""

    data: dict[str, Any]
    """JSON object on stdin."""

    @property
    def folder(self) -> Path:
        """Working folder of the session."""
        return Path(self._text("cwd") or ".")

    @property
    def session(self) -> str:
        """Id of the session; empty if the event has none."""
        return self._text("session_id")

    @property
    def agent(self) -> str:
        """Name of the subagent that acts, as `warpsmith:profiler`; empty in the main thread."""
        return self._text("agent_type")

    @property
    def is_plugin_agent(self) -> bool:
        """True if one of this plugin's agents acts."""
        return self.agent.startswith(PLUGIN_PREFIX)

    @property
    def tool(self) -> str:
        """Name of the tool that is about to run."""
        return self._text("tool_name")

    def argument(self, name: str) -> str:
        """Return an argument of the tool; empty if it has none of that name."""
        arguments = self.data.get("tool_input")
        value = arguments.get(name) if isinstance(arguments, dict) else None
        return value if isinstance(value, str) else ""

    @property
    def sent_back(self) -> bool:
        """True if a hook sent this answer back before."""
        return self.data.get("stop_hook_active") is True

    @property
    def answer(self) -> str:
        """Last message of the agent."""
        return self._text("last_assistant_message")

    def _text(self, name: str) -> str:
        value = self.data.get(name)
        return value if isinstance(value, str) else ""


@dataclass(frozen=True)
class Write:
    """A path that a command writes or removes."""

    path: Path
    """The path, absolute; a pattern that matches nothing stays as it is."""
    deep: bool = False
    """True if everything below a folder is written too."""
    names: tuple[str, ...] = ()
    """With `deep`: patterns, one of which the file's name or path matches, and none with `!` before it; empty: all
    files."""


def permission_answer(decision: Literal["allow", "deny", "ask"], reason: str) -> Answer:
    """Return an answer that lets a tool run unasked, forbids it, or leaves it to the person."""
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": f"Warpsmith: {reason}",
        }
    }


def send_back(reason: str) -> Answer:
    """Return an answer that keeps the agent from stopping."""
    return {"decision": "block", "reason": f"Warpsmith: {reason}"}
