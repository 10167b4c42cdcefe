"""Campaigns that the loop runs: the toy project of the campaign's tests, a lab that says what it is told to,
and a designer with a script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from scripted_lab import Lab, toys

from warpsmith.campaign import lab_requests
from warpsmith.campaign.rounds.due_phase import DuePhase
from warpsmith.campaign.rounds.state import CampaignState
from warpsmith.core.campaign import Plan, Selection
from warpsmith.driver.proposal import LessonProposal

toy_language, project, campaign = toys.toy_language, toys.project, toys.campaign


@pytest.fixture
def make() -> ModuleType:
    """The factories of the campaign's tests."""
    return toys


class Scripted:
    """A designer whose answers are fixed; `asked` keeps what it was asked for, as `step:round`."""

    name = "scripted"
    cost = ""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.refusals: list[str] = []
        self.tries = 1
        self.fixes = False
        self.proposal = LessonProposal(action="nothing", text="It was known already.")
        self.write: Callable[[Path], object] = lambda path: path.write_text(f"multiply by {path.stem}\n")
        self.breaks_at = ""
        self.rounds = 100

    def _ask(self, step: DuePhase, refused: str) -> None:
        self.refusals.append(refused)
        self.asked.append(f"{step.step}:{step.round}")
        if self.breaks_at == self.asked[-1]:
            raise KeyboardInterrupt

    def select(self, state: CampaignState, step: DuePhase, refused: str = "") -> Selection:
        self._ask(step, refused)
        return Selection(language="toy", because="It is simple enough.")

    def plan(self, state: CampaignState, step: DuePhase, refused: str = "") -> Plan:
        self._ask(step, refused)
        category = ("memory", "compute", "latency", "launch")[step.round % 4]
        review = toys.review(category, "fusion")
        return toys.plan(category, hypothesis=f"Hypothesis of round {step.round}.", review=review)

    def design(self, state: CampaignState, step: DuePhase, path: Path, refused: str = "") -> None:
        self._ask(step, refused)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.write(path)

    def learn(self, state: CampaignState, step: DuePhase, refused: str = "") -> LessonProposal:
        self._ask(step, refused)
        return self.proposal

    def finished(self, state: CampaignState) -> str | None:
        return "the script ends" if len(state.rounds) >= self.rounds else None


@pytest.fixture
def designer() -> Scripted:
    return Scripted()


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    made = Lab()
    monkeypatch.setattr(lab_requests, "judge_due_version", made.verify)
    monkeypatch.setattr(lab_requests, "profile_due_version", made.profile)
    return made
