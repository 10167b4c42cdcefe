"""Reply of an agent: its text, how its session ended, and what the session cost."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warpsmith.core.spend import AgentPhase, Ending, Spend

if TYPE_CHECKING:
    from claude_agent_sdk import AssistantMessage, ResultMessage

_TOKENS = {
    "input_tokens": "inputTokens",
    "cache_write_tokens": "cacheCreationInputTokens",
    "cache_read_tokens": "cacheReadInputTokens",
    "output_tokens": "outputTokens",
}
"""Field of a spend to the CLI's name for it in the usage of one model."""

_PARTIAL = {
    "input_tokens": "input_tokens",
    "cache_write_tokens": "cache_creation_input_tokens",
    "cache_read_tokens": "cache_read_input_tokens",
    "output_tokens": "output_tokens",
}
"""Field of a spend to the CLI's name for it in the usage of one message."""


@dataclass
class AgentReply:
    """Messages of one session with an agent, as far as the session came."""

    seconds: float = 0.0
    """Wall time."""
    result: ResultMessage | None = None
    """The session's last message; None if it ended without one."""
    messages: dict[str, AssistantMessage] = field(default_factory=dict)
    """The model's messages by id; the CLI sends one message a block."""
    stderr: deque[str] = field(default_factory=lambda: deque(maxlen=3))
    """The CLI's last lines on stderr."""
    fault: str = ""
    """Error of the SDK; empty if there was none."""
    interrupted: bool = False
    """True if a person pressed Ctrl-C."""

    @property
    def ending(self) -> Ending:
        """Return how the session ended."""
        if self.interrupted:
            return "interrupted"
        if self.result is None:
            return "died"
        limits: dict[str, Ending] = {"error_max_turns": "turns", "error_max_budget_usd": "budget"}
        if self.result.subtype in limits:
            return limits[self.result.subtype]
        if self.result.is_error:
            return "api" if self.result.terminal_reason == "api_error" else "died"
        return "done"

    @property
    def text(self) -> str:
        """Return the text of the last message."""
        return (self.result.result or "") if self.result else ""

    @property
    def complaint(self) -> str:
        """Return what went wrong, in one sentence."""
        if any(message.error == "authentication_failed" for message in self.messages.values()):
            return f"{_sentence(self.text)} Log in with `claude`, or set ANTHROPIC_API_KEY."
        errors = "; ".join(self.result.errors or ()) if self.result else ""
        return _sentence(self.text or errors or self.fault or "; ".join(self.stderr) or "It gave no reason")

    def spend(self, phase: AgentPhase, agent: str) -> Spend:
        """Return the cost: from the last message, else the tokens of each message and no dollars."""
        usage = self.result.model_usage if self.result else None
        if usage:
            tokens, models = _sum_tokens(usage.values(), _TOKENS), list(usage)
        else:
            tokens = _sum_tokens([message.usage or {} for message in self.messages.values()], _PARTIAL)
            models = [message.model for message in self.messages.values() if not message.error]
        return Spend(
            phase=phase,
            agent=agent,
            models=tuple(dict.fromkeys(models)),
            turns=self.result.num_turns if self.result else len(self.messages),
            **tokens,
            usd=self.result.total_cost_usd if self.result else None,
            seconds=round(self.seconds, 1),
            ended=self.ending,
        )


def _sum_tokens(usages: Iterable[Mapping[str, object]], names: Mapping[str, str]) -> dict[str, int]:
    rows = [dict(usage) for usage in usages]
    return {field: sum(_count(row.get(name)) for row in rows) for field, name in names.items()}


def _sentence(text: str) -> str:
    return " ".join(text.split())[:400].rstrip(".") + "."


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
