"""Kind of answer that each agent owes. Standard library only: hooks import it at every event."""

from __future__ import annotations

from warpsmith import languages

ANSWERS: dict[str, str | None] = {
    "orchestrator": None,
    "profiler": "profile",
    "kernel-designer": "version",
    **dict.fromkeys(languages.agent_names(), "version"),
    "reviewer": "review",
}
"""Agent to the kind of answer that its last message must hold; None: free text."""
