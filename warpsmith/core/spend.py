"""Spend: what the agents of a campaign cost, one entry a query, and sums of it."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor, fsum, log10
from typing import Literal, Self

from pydantic import Field

from warpsmith.core.base import Model

Ending = Literal["done", "turns", "budget", "api", "interrupted", "died"]
"""How a query ended: by itself, at its limit of turns or dollars, by an error of the API, by a person, unknown."""

AgentPhase = Literal["SELECT", "STRATEGIZE", "DESIGN", "LEARN"]
"""The phases in which an agent is asked."""


def format_usd(usd: float) -> str:
    """US dollars: `$12.35`, `$0.12`, and two digits of what is less than ten cents: `$0.0031`."""
    if usd >= 0.0995 or usd == 0:
        return f"${usd:.2f}"
    return f"${usd:.{1 - floor(log10(usd))}f}"


class Spend(Model):
    """What one query of an agent cost, as Claude Code counts it."""

    phase: AgentPhase
    """The phase that it was asked in."""
    agent: str
    """Who was asked: `kernel-designer`."""
    models: tuple[str, ...]
    """The models that answered."""
    turns: int = Field(ge=0)
    """Answers of the model."""
    input_tokens: int = Field(ge=0)
    """Tokens read at full price."""
    cache_write_tokens: int = Field(ge=0)
    """Tokens written to the prompt cache."""
    cache_read_tokens: int = Field(ge=0)
    """Tokens read from the prompt cache."""
    output_tokens: int = Field(ge=0)
    """Tokens written."""
    usd: float | None = Field(ge=0)
    """US dollars; null where the query ended before it told."""
    seconds: float = Field(ge=0)
    """Wall time."""
    ended: Ending
    """How it ended."""


class Spending(Model):
    """The queries of the open round so far: `spent.json`."""

    queries: tuple[Spend, ...]
    """In order."""


class Spent(Model):
    """A sum over queries."""

    queries: int
    """How many."""
    turns: int
    """Answers of the models."""
    input_tokens: int
    """Tokens read at full price."""
    cache_write_tokens: int
    """Tokens written to the prompt cache."""
    cache_read_tokens: int
    """Tokens read from the prompt cache."""
    output_tokens: int
    """Tokens written."""
    usd: float
    """US dollars of the queries that told."""
    untold: int
    """Queries that ended before they told their dollars."""
    seconds: float
    """Wall time."""

    @classmethod
    def of(cls, spends: Iterable[Spend]) -> Self:
        """The sum."""
        found = list(spends)
        return cls(
            queries=len(found),
            turns=sum(spend.turns for spend in found),
            input_tokens=sum(spend.input_tokens for spend in found),
            cache_write_tokens=sum(spend.cache_write_tokens for spend in found),
            cache_read_tokens=sum(spend.cache_read_tokens for spend in found),
            output_tokens=sum(spend.output_tokens for spend in found),
            usd=fsum(spend.usd or 0 for spend in found),
            untold=sum(spend.usd is None for spend in found),
            seconds=fsum(spend.seconds for spend in found),
        )

    @property
    def cost(self) -> str:
        """`$0.12`, or `at least $0.12` where a query ended before it told."""
        return f"{'at least ' if self.untold else ''}{format_usd(self.usd)}"

    @property
    def text(self) -> str:
        """In a few words."""
        read = self.input_tokens + self.cache_write_tokens + self.cache_read_tokens
        queries = f"{self.queries} {'query' if self.queries == 1 else 'queries'}"
        return f"{self.cost} in {queries}, {read} tokens read and {self.output_tokens} written"
