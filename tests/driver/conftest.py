"""Campaigns that the loop runs: the toy project of the campaign's tests, a lab that says what it is told to,
and a designer with a script."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from warpsmith.campaign import rounds, state, work
from warpsmith.campaign.state import State
from warpsmith.campaign.steps import NextStep
from warpsmith.campaign.store import Campaign
from warpsmith.core.campaign import Plan, Selection
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.profile import Profile
from warpsmith.driver.proposal import LessonProposal


def _campaign_tests() -> ModuleType:
    path = Path(__file__).parents[1] / "campaign" / "campaign_kit.py"
    spec = importlib.util.spec_from_file_location("toy_campaign", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


toys = _campaign_tests()
toy_language, project, campaign = toys.toy_language, toys.project, toys.campaign


@pytest.fixture
def make() -> ModuleType:
    """The factories of the campaign's tests."""
    return toys


class Scripted:
    """A designer whose answers are fixed; `asked` keeps what it was asked for, as `step:round`."""

    name = "scripted"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.proposal = LessonProposal(action="nothing", text="It was known already.")
        self.write: Callable[[Path], object] = lambda path: path.write_text(f"multiply by {path.stem}\n")
        self.breaks_at = ""
        self.rounds = 100

    def _ask(self, step: NextStep) -> None:
        self.asked.append(f"{step.step}:{step.round}")
        if self.breaks_at == self.asked[-1]:
            raise KeyboardInterrupt

    def select(self, state: State, step: NextStep) -> Selection:
        self._ask(step)
        return Selection(language="toy", because="It is simple enough.")

    def plan(self, state: State, step: NextStep) -> Plan:
        self._ask(step)
        category = ("memory", "compute", "latency", "launch")[step.round % 4]
        review = toys.review(category, "fusion")
        return toys.plan(category, hypothesis=f"Hypothesis of round {step.round}.", review=review)

    def design(self, state: State, step: NextStep, path: Path) -> None:
        self._ask(step)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.write(path)

    def learn(self, state: State, step: NextStep) -> LessonProposal:
        self._ask(step)
        return self.proposal

    def finished(self, state: State) -> str | None:
        return "the script ends" if len(state.rounds) >= self.rounds else None


@pytest.fixture
def designer() -> Scripted:
    return Scripted()


class Lab:
    """What the lab will find: a verdict and a ceiling share by version, `ACCEPT` and one half by default."""

    def __init__(self) -> None:
        self.verdicts: dict[str, str] = {}
        self.shares: dict[str, float] = {}
        self.judged: list[str] = []
        self.profiled: list[str] = []

    def verify(self, campaign: Campaign, tell: Any = None) -> Evaluation:
        path = rounds.to_judge(campaign).path
        speedup = 1.2 if state.read(campaign).best else None
        self.judged.append(path.stem)
        verdict = self.verdicts.get(path.stem, "ACCEPT")
        found: Evaluation = toys.evaluation(path, verdict, speedup, self.shares.get(path.stem, 0.5))
        rounds.record_verdict(campaign, found)
        return found

    def profile(self, campaign: Campaign, tell: Any = None) -> Profile:
        name, solution = rounds.to_profile(campaign)
        self.profiled.append(f"{name} {solution.path.stem}")
        found: Profile = toys.profile(solution.path)
        rounds.record_profile(campaign, found)
        return found


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    made = Lab()
    monkeypatch.setattr(work, "verify", made.verify)
    monkeypatch.setattr(work, "profile", made.profile)
    return made
