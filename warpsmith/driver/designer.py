"""Designer: who decides in the headless loop. Its answers are proposals; the lab checks each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from warpsmith.campaign.state import State
from warpsmith.campaign.steps import NextStep
from warpsmith.core.campaign import Plan, Selection
from warpsmith.driver.proposal import LessonProposal


class Designer(Protocol):
    """Answers the four steps that the lab cannot do by itself."""

    name: str
    """What reports call it."""

    def select(self, state: State, step: NextStep) -> Selection:
        """SELECT: the language of the next version, and why."""

    def plan(self, state: State, step: NextStep) -> Plan:
        """STRATEGIZE: one hypothesis."""

    def design(self, state: State, step: NextStep, path: Path) -> None:
        """DESIGN: write the next version at `path`."""

    def learn(self, state: State, step: NextStep) -> LessonProposal:
        """LEARN: an entry to add, refine or refute, or why there is nothing new."""

    def finished(self, state: State) -> str | None:
        """Why the designer has nothing left to propose; None: it goes on."""
