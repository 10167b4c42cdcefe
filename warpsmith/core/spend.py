"""Cost of a campaign's agents: one entry for each query, and sums of them."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor, fsum, log10
from typing import Literal, Self

from pydantic import Field

from warpsmith.core.base import Model

Ending = Literal["done", "turns", "budget", "api", "interrupted", "died"]
"""End of a query: by itself, at its limit of turns or dollars, by an API error, by a person, or unknown."""

AgentPhase = Literal["SELECT", "STRATEGIZE", "DESIGN", "LEARN"]
"""Phases in which an agent is queried."""


def format_usd(usd: float) -> str:
    """Format US dollars: `$12.35`, `$0.12`, and two digits for less than ten cents: `$0.0031`."""
    if usd >= 0.0995 or usd == 0:
        return f"${usd:.2f}"
    return f"${usd:.{1 - floor(log10(usd))}f}"


class Spend(Model):
    """Cost of one query to an agent, as Claude Code counts it."""

    phase: AgentPhase
    """Phase of the query."""
    agent: str
    """Name of the agent, such as `kernel-designer`."""
    models: tuple[str, ...]
    """Models that answered."""
    turns: int = Field(ge=0)
    """Number of the model's answers."""
    input_tokens: int = Field(ge=0)
    """Tokens read at full price."""
    cache_write_tokens: int = Field(ge=0)
    """Tokens written to the prompt cache."""
    cache_read_tokens: int = Field(ge=0)
    """Tokens read from the prompt cache."""
    output_tokens: int = Field(ge=0)
    """Tokens written."""
    usd: float | None = Field(ge=0)
    """US dollars; null if the query ended before it reported its cost."""
    seconds: float = Field(ge=0)
    """Wall-clock time in seconds."""
    ended: Ending
    """End of the query."""


class Spending(Model):
    """Queries of the open round so far: `spent.json`."""

    queries: tuple[Spend, ...]
    """Queries in order."""


class Spent(Model):
    """Sum of the cost of queries."""

    queries: int
    """Number of queries."""
    turns: int
    """Number of the models' answers."""
    input_tokens: int
    """Tokens read at full price."""
    cache_write_tokens: int
    """Tokens written to the prompt cache."""
    cache_read_tokens: int
    """Tokens read from the prompt cache."""
    output_tokens: int
    """Tokens written."""
    usd: float
    """US dollars of the queries that reported their cost."""
    untold: int
    """Number of queries that ended before they reported their cost."""
    seconds: float
    """Wall-clock time in seconds."""

    @classmethod
    def of(cls, spends: Iterable[Spend]) -> Self:
        """Sum the cost of queries."""
        queries = list(spends)
        return cls(
            queries=len(queries),
            turns=sum(spend.turns for spend in queries),
            input_tokens=sum(spend.input_tokens for spend in queries),
            cache_write_tokens=sum(spend.cache_write_tokens for spend in queries),
            cache_read_tokens=sum(spend.cache_read_tokens for spend in queries),
            output_tokens=sum(spend.output_tokens for spend in queries),
            usd=fsum(spend.usd or 0 for spend in queries),
            untold=sum(spend.usd is None for spend in queries),
            seconds=fsum(spend.seconds for spend in queries),
        )

    @property
    def cost(self) -> str:
        """Dollars as text: `$0.12`, or `at least $0.12` if a query did not report its cost."""
        return f"{'at least ' if self.untold else ''}{format_usd(self.usd)}"

    @property
    def text(self) -> str:
        """Sum in a few words."""
        read = self.input_tokens + self.cache_write_tokens + self.cache_read_tokens
        count = f"{self.queries} {'query' if self.queries == 1 else 'queries'}"
        return f"{self.cost} in {count}, {read} tokens read and {self.output_tokens} written"
