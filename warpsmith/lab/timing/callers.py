"""Threads that callers may call a version from: other than the worker's own, which makes all other calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from warpsmith.core import gate_rules


class Caller(NamedTuple):
    """A thread that makes a call."""

    description: str
    """Phrase for messages."""
    settings: Mapping[str, int]
    """Arguments of `openmp_state.call_as`."""

    @property
    def is_team(self) -> bool:
        """Return whether its parallel regions have more threads than usual, which makes a call of many slow."""
        return "team" in self.settings


CALLERS: Final = (
    Caller("inside a parallel region of its caller", {"nested": True}),
    Caller(f"from a thread with {gate_rules.CALLER_STACK >> 10} KiB of stack", {"stack": gate_rules.CALLER_STACK}),
    *(Caller(f"with {team} OpenMP threads", {"team": team}) for team in gate_rules.CALLER_TEAMS),
)
"""Callers; the seconds of a call without a larger team say what one with it may take."""
