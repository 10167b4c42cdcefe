"""Recipe of a designer: what another process needs to create it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from warpsmith.core.base import Model

if TYPE_CHECKING:
    from warpsmith.campaign.history.store import Campaign
    from warpsmith.core.text import Tell
    from warpsmith.driver.designer import Designer


class Recipe(Model):
    """Function that creates a designer, and its arguments."""

    factory: str
    """`module:function`, called with the campaign, a callback for progress, and the arguments."""
    arguments: dict[str, str | float | None] = {}
    """Arguments by name."""
    budget: float | None = None
    """Most US dollars that the designer may cost, passed on as `budget`; null: no limit."""

    def create(self, campaign: Campaign, tell: Tell) -> Designer:
        """Create the designer for a campaign."""
        module, _, name = self.factory.partition(":")
        factory = getattr(import_module(module), name)
        budget = {} if self.budget is None else {"budget": self.budget}
        return cast("Designer", factory(campaign, tell, **self.arguments, **budget))
