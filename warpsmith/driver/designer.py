"""Interface of a designer, which decides in the headless loop. The lab checks each of its proposals."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from warpsmith.campaign.rounds.due_phase import DuePhase
from warpsmith.campaign.rounds.state import CampaignState
from warpsmith.core.campaign import Plan, Selection
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
