"""Which contract each agent's answer keeps. Standard library only: hooks read it at every event."""

from __future__ import annotations

ANSWERS: dict[str, str | None] = {
    "orchestrator": None,
    "profiler": "profile",
    "kernel-designer": "version",
    "cpp-specialist": "version",
    "cuda-specialist": "version",
    "cutedsl-specialist": "version",
    "cutile-specialist": "version",
    "triton-specialist": "version",
    "reviewer": "review",
}
"""Agent to the kind of contract that its last message must hold; None: it answers freely."""
