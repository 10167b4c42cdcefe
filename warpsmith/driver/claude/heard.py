"""What a session with an agent said, how it ended and what it cost, as far as that came to be known."""

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
"""Fields of a spend, and what the CLI calls them for each model."""

_PARTIAL = {
    "input_tokens": "input_tokens",
    "cache_write_tokens": "cache_creation_input_tokens",
    "cache_read_tokens": "cache_read_input_tokens",
    "output_tokens": "output_tokens",
}
"""The same in a single message."""


@dataclass
class Heard:
    """What a session said, as far as it came."""

    seconds: float = 0.0
    """Wall time."""
    result: ResultMessage | None = None
    """Its last word."""
    messages: dict[str, AssistantMessage] = field(default_factory=dict)
    """The model's answers by id; the CLI sends one message a block."""
    stderr: deque[str] = field(default_factory=lambda: deque(maxlen=3))
    """The CLI's last lines on stderr."""
    fault: str = ""
    """What the SDK found wrong."""
    interrupted: bool = False
    """Whether a person pressed Ctrl-C."""

    @property
    def ending(self) -> Ending:
        """How it ended."""
        if self.interrupted:
            return "interrupted"
        if self.result is None:
            return "died"
        known: dict[str, Ending] = {"error_max_turns": "turns", "error_max_budget_usd": "budget"}
        if self.result.subtype in known:
            return known[self.result.subtype]
        if self.result.is_error:
            return "api" if self.result.terminal_reason == "api_error" else "died"
        return "done"

    @property
    def text(self) -> str:
        """Its last words."""
        return (self.result.result or "") if self.result else ""

    @property
    def complaint(self) -> str:
        """What went wrong, in one sentence."""
        if any(message.error == "authentication_failed" for message in self.messages.values()):
            return f"{_sentence(self.text)} Log in with `claude`, or set ANTHROPIC_API_KEY."
        listed = "; ".join(self.result.errors or ()) if self.result else ""
        return _sentence(self.text or listed or self.fault or "; ".join(self.stderr) or "It gave no reason")

    def spend(self, phase: AgentPhase, agent: str) -> Spend:
        """What it cost: as its last word says, else the tokens that its messages named, and no dollars."""
        used = self.result.model_usage if self.result else None
        if used:
            tokens, models = _summed(used.values(), _TOKENS), list(used)
        else:
            heard = [message.usage or {} for message in self.messages.values()]
            tokens = _summed(heard, _PARTIAL)
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


def _summed(used: Iterable[Mapping[str, object]], names: Mapping[str, str]) -> dict[str, int]:
    counted = [dict(one) for one in used]
    return {ours: sum(_whole(one.get(theirs)) for one in counted) for ours, theirs in names.items()}


def _sentence(said: str) -> str:
    return " ".join(said.split())[:400].rstrip(".") + "."


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
