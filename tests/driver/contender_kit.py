"""Contenders without processes: a scripted designer, checks by the text of a version, and screens by a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import campaign_kit as toys
import pytest

from warpsmith.campaign import lab_requests
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.jobs.screening import ScreenOrder
from warpsmith.campaign.rounds.due_phase import DuePhase
from warpsmith.campaign.rounds.state import CampaignState
from warpsmith.core.campaign import Plan, ScreenedSpeedup, Selection
from warpsmith.core.evaluation import Evaluation, Interval
from warpsmith.core.spend import Spend
from warpsmith.driver.contenders import contenders_round, design, screen
from warpsmith.driver.contenders.recipe import Recipe
from warpsmith.driver.proposal import LessonProposal
from warpsmith.errors import AgentStopped
from warpsmith.execution.job import ScreenResult, ScreenResults
from warpsmith.ledger.store import write_model

SPEND = Spend(
    phase="DESIGN", agent="kernel-designer", models=("m",), turns=1, input_tokens=1, cache_write_tokens=0,
    cache_read_tokens=0, output_tokens=1, usd=0.25, seconds=1.0, ended="done",
)  # fmt: skip


class Bench:
    """What the contenders of a test are, and what was done with them."""

    def __init__(self) -> None:
        self.texts = {number: f"multiply by {number}0\n" for number in range(1, 9)}
        self.speedups = {"multiply by 10": 1.1, "multiply by 20": 1.3, "multiply by 30": 1.2}
        self.margin = 0.01
        self.changes = {number: 5.0 * number for number in range(1, 9)}
        self.devices = 1
        self.devices_there = 1
        self.spends = 0
        self.asked: list[str] = []
        self.screened: list[list[int]] = []
        self.charged: list[float] = []
        self.breaks_at = ""
        self.lines: list[str] = []

    def reach(self, place: str) -> None:
        self.asked.append(place)
        if place == self.breaks_at:
            raise KeyboardInterrupt


BENCH: list[Bench] = []


class Planner:
    """A designer whose contender N has hypothesis N; its versions come from the bench."""

    name, cost, tries, fixes = "scripted", "", 2, False

    def __init__(self, bench: Bench) -> None:
        self.bench, self.count = bench, 3
        self.notes: list[tuple[str, ...]] = []
        self.refusals: list[str] = []

    def select(self, state: CampaignState, step: DuePhase, refused: str = "") -> Selection:
        return Selection(language="toy", because="It is simple enough.")

    def plan(self, state: CampaignState, step: DuePhase, refused: str = "") -> Plan:
        raise AssertionError("contenders are planned beside each other")

    def plan_beside(
        self, state: CampaignState, step: DuePhase, others: Sequence[Plan], refused: str = ""
    ) -> Plan | None:
        number = len(others) + 1
        self.bench.reach(f"plan {number}")
        self.notes.append(step.notes)
        self.refusals.append(refused)
        change = self.bench.changes[number] + (100 if refused else 0)
        hypothesis = f"Way {number} of round {state.number} is the faster way."
        plan: Plan = toys.plan("memory", hypothesis=hypothesis, expected_change=change)
        return plan if number <= self.count else None

    def recipe(self, left: int) -> Recipe:
        return Recipe(factory=f"{__name__}:create_planner", budget=1.0 / left)

    def charge(self, recipe: Recipe | None, spends: Sequence[Spend]) -> None:
        self.bench.charged += [spend.usd or 0.0 for spend in spends]

    def design(self, state: CampaignState, step: DuePhase, path: Path, refused: str = "") -> None:
        plan = state.open.plan
        number = int(plan.hypothesis.split()[1]) if plan else 0
        self.bench.spends += 1
        state.campaign.add_spend(SPEND.model_copy(update={"turns": number, "seconds": float(self.bench.spends)}))
        self.bench.reach(f"design {number}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.bench.texts[number] if plan else "multiply\n")

    def learn(self, state: CampaignState, step: DuePhase, refused: str = "") -> LessonProposal:
        return LessonProposal(action="nothing", text="It was known already.")

    def finished(self, state: CampaignState) -> str | None:
        return "the script ends" if len(state.rounds) >= 2 else None


def create_planner(campaign: Campaign, tell: Any, budget: float) -> Planner:
    assert 0 < budget <= 1
    return Planner(BENCH[-1])


class InProcess:
    """What `Processes` does, in this process; an interruption comes when all are waited for."""

    def __init__(self, tell: Any) -> None:
        self.error: BaseException | None = None

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def start(self, title: str, module: str, folder: Path) -> None:
        try:
            if module == screen.__name__:
                write_model(folder / screen.RESULTS, _screen(folder))
            else:
                design._design_in_fork(folder, lambda _: None)
        except (KeyboardInterrupt, AgentStopped) as error:
            self.error = error

    def wait(self) -> None:
        if isinstance(self.error, KeyboardInterrupt):
            raise self.error


def _screen(folder: Path) -> ScreenResults:
    bench = BENCH[-1]
    order = ScreenOrder.model_validate_json((folder / screen.ORDER).read_bytes())
    bench.screened.append(sorted(order.paths))
    bench.reach("screen")
    speedups = {number: bench.speedups[Path(path).read_text().strip()] for number, path in order.paths.items()}
    return ScreenResults(
        results={
            number: ScreenResult(
                times=ScreenedSpeedup(
                    speedup=speedup, interval=Interval(low=speedup - bench.margin, high=speedup + bench.margin)
                )
            )
            for number, speedup in speedups.items()
        }
    )


def check_by_text(project: Any, manifest: Any, solution: Any, tell: Any, conditions: Any) -> Evaluation:
    """A check that fails where the version says that it is wrong."""
    BENCH[-1].reach(f"check {solution.path.read_text().strip()}")
    assert not conditions.timed
    if "wrong" not in solution.path.read_text():
        right: Evaluation = toys.evaluation(solution.path, "ACCEPT", None)
        devices = BENCH[-1].devices_there
        origin = right.provenance.model_copy(update={"context_devices": devices if devices > 1 else None})
        return right.model_copy(update={"provenance": origin})
    result = {"workload": "small", "status": "RUNTIME_ERROR", "message": "it died"}
    wrong: Evaluation = toys.evaluation(solution.path, "ROLLBACK", None, results=[result])
    return wrong


def install(patch: pytest.MonkeyPatch) -> Bench:
    """Put the scripted lab in place of processes."""
    bench = Bench()
    BENCH[:] = [bench]
    page = SimpleNamespace(target=SimpleNamespace(id="cpu", kind="cpu"))
    patch.setattr(contenders_round, "Processes", InProcess)
    patch.setattr(contenders_round.hardware, "read_target_page", lambda *_: page)
    patch.setattr(contenders_round.device_lease, "count_devices", lambda _: bench.devices)
    patch.setattr(lab_requests, "judge_solution", check_by_text)
    return bench
