"""Interface of a designer, which decides in the headless loop. The lab checks each of its proposals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from warpsmith.campaign.rounds.due_phase import DuePhase
from warpsmith.campaign.rounds.state import CampaignState
from warpsmith.core.campaign import Plan, Selection
from warpsmith.core.spend import Spend
from warpsmith.driver.contenders.recipe import Recipe
from warpsmith.driver.proposal import LessonProposal


class Designer(Protocol):
    """Source of the four proposals that the lab cannot make itself.

    `refused` is the lab's error message about the last proposal for the same step, empty at the first attempt.
    """

    name: str
    """Name in reports."""
    tries: int
    """Attempts at one step before the run stops."""
    fixes: bool
    """True if it can change a version that does not build."""

    @property
    def cost(self) -> str:
        """Return the cost of this run, as `$0.12`; empty if it costs nothing."""

    def select(self, state: CampaignState, step: DuePhase, refused: str = "") -> Selection:
        """Choose the language of the next version, for SELECT."""

    def plan(self, state: CampaignState, step: DuePhase, refused: str = "") -> Plan:
        """Propose one hypothesis, for STRATEGIZE."""

    def design(self, state: CampaignState, step: DuePhase, path: Path, refused: str = "") -> None:
        """Write the next version to `path`, for DESIGN."""

    def learn(self, state: CampaignState, step: DuePhase, refused: str = "") -> LessonProposal:
        """Propose an entry to add, refine or refute, or the reason for no change, for LEARN."""

    def finished(self, state: CampaignState) -> str | None:
        """Return the reason why the designer has no further proposal, or None if it has one."""


class ContenderDesigner(Designer, Protocol):
    """Designer that can plan several contenders of a round, whose versions other processes design."""

    def plan_beside(
        self, state: CampaignState, step: DuePhase, others: Sequence[Plan], refused: str = ""
    ) -> Plan | None:
        """Propose a hypothesis that differs from the plans of the round's other contenders; None if there is none.

        The notes of `step` describe them too.
        """

    def recipe(self, left: int) -> Recipe:
        """Return what creates the designer of one version, with its share of the budget: one of `left` shares."""

    def charge(self, recipe: Recipe | None, spends: Sequence[Spend]) -> None:
        """Count what a designer has cost that was created by `recipe`, or by an earlier run if that is None."""
