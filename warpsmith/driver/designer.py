"""Designer: who decides in the headless loop. Its answers are proposals; the lab checks each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from warpsmith.campaign.rounds.state import State
from warpsmith.campaign.rounds.steps import NextStep
from warpsmith.core.campaign import Plan, Selection
from warpsmith.driver.proposal import LessonProposal


class Designer(Protocol):
    """Answers the four steps that the lab cannot do by itself.

    `refused` is the lab's sentence about its last answer to the same step; empty where it is asked first.
    """

    name: str
    """What reports call it."""
    tries: int
    """How often it is asked for one step before its answers count as refused for good."""

    @property
    def cost(self) -> str:
        """What it has cost in this run, as `$0.12`; empty where it costs nothing."""

    def select(self, state: State, step: NextStep, refused: str = "") -> Selection:
        """SELECT: the language of the next version, and why."""

    def plan(self, state: State, step: NextStep, refused: str = "") -> Plan:
        """STRATEGIZE: one hypothesis."""

    def design(self, state: State, step: NextStep, path: Path, refused: str = "") -> None:
        """DESIGN: write the next version at `path`."""

    def learn(self, state: State, step: NextStep, refused: str = "") -> LessonProposal:
        """LEARN: an entry to add, refine or refute, or why there is nothing new."""

    def finished(self, state: State) -> str | None:
        """Why the designer has nothing left to propose; None: it goes on."""
