"""The work of an autopilot: one region after the other, results one by one, reasons to stop."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warpsmith import project as projects
from warpsmith.campaign.history import store
from warpsmith.campaign.rounds import state as campaign_state
from warpsmith.core.spend import Spend
from warpsmith.core.trial import TrialDecision, TrialVerdict
from warpsmith.errors import AgentStopped, MissingInput, Misuse, SolutionFailed
from warpsmith.program.autopilot import chain
from warpsmith.program.autopilot import plan as plans
from warpsmith.program.autopilot.chain import AutopilotSettings
from warpsmith.program.autopilot.models import AutopilotPlan, PlannedRegion
from warpsmith.program.operators import accepted_regions, integrate
from warpsmith.program.process.program import resolve_step_program
from warpsmith.program.regions import extract_region
from warpsmith.program.trials import trial, trial_store
from warpsmith.program.trials.goal import ProgramGoal
from warpsmith.use import choice

SLOWER = "slower: 0.95x"
"""Reason of the step's verdict on a kernel that gained alone."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A program with three regions; `log` fills with what is done, `verdicts` has the ends of trials."""
    (tmp_path / "warpsmith.toml").touch()
    (tmp_path / "train.py").write_text("def train_step():\n    pass\n")
    project = projects.find_project(tmp_path)
    program = resolve_step_program(str(tmp_path / "train.py"), "train_step")
    plan = AutopilotPlan(
        program=trial_store.program_reference(project, program), sha256="0" * 64, listed="2026-11-21 12:00",
        device="cpu", target="cpu", designer="drafts mine", step_seconds=1, kernel_seconds=0.9,
        regions=tuple(PlannedRegion(digest=d, kind="norm", share=0.2, ceiling=1.25) for d in ("a1", "b2", "c3")),
        made="2026-11-21 12:00",
    )  # fmt: skip
    box = SimpleNamespace(project=project, program=program, plan=plan, log=[], verdicts={}, definitions={})
    box.trials = SimpleNamespace(plan=lambda: None, records=dict)

    def extract(_project: Any, _program: Any, digest: str, **_: Any) -> Any:
        box.log.append(f"extract {digest}")
        box.definitions[digest] = f"norm_{digest}"
        return SimpleNamespace(extraction=SimpleNamespace(op=f"norm_{digest}"))

    def try_kernel(_project: Any, op: str, *_: Any, **__: Any) -> Any:
        box.log.append(f"integrate {op}")
        verdict = box.verdicts.get(op, TrialVerdict.KEPT)
        if isinstance(verdict, Exception):
            raise verdict
        decision = TrialDecision(verdict=verdict, reason=SLOWER if verdict is TrialVerdict.RESTORED else "faster")
        return SimpleNamespace(closed=SimpleNamespace(record=SimpleNamespace(decision=decision)))

    monkeypatch.setattr(accepted_regions, "list_definitions", lambda _: dict(box.definitions))
    monkeypatch.setattr(extract_region, "extract_region", extract)
    monkeypatch.setattr(integrate, "integrate_kernel", try_kernel)
    monkeypatch.setattr(trial_store, "program_trials", lambda *_: box.trials)
    monkeypatch.setattr(plans, "_plan_path", lambda *_: tmp_path / "autopilot.json")
    return box


def run(here: SimpleNamespace, make: Any = None, **settings: Any) -> str:
    def make_kernel(_region: Any, op: str, target: str, left: float | None) -> None:
        here.log.append(f"make {op} {target}")
        if make is not None:
            make(op, left)

    plan = plans.read_plan(here.project, here.program) or here.plan
    return chain.run_plan(
        here.project, here.program, plan, AutopilotSettings(**settings), make_kernel, lambda _: None
    )


def results(here: SimpleNamespace) -> dict[str, tuple[str, str]]:
    plan = plans.read_plan(here.project, here.program)
    return {result.digest: (result.end, result.reason) for result in plan.results} if plan else {}


def test_each_region_is_extracted_optimized_and_tried_in_the_step(here):
    here.definitions["a1"] = "mine"
    here.verdicts["norm_b2"] = TrialVerdict.RESTORED
    assert "all regions" in run(here)
    assert here.log == [
        "make mine cpu", "integrate mine", "extract b2", "make norm_b2 cpu", "integrate norm_b2", "extract c3",
        "make norm_c3 cpu", "integrate norm_c3",
    ]  # fmt: skip
    assert results(here) == {"a1": ("kept", "faster"), "b2": ("refused", SLOWER), "c3": ("kept", "faster")}


def test_a_second_run_after_a_kill_repeats_nothing(here):
    def interrupt(op: str, _: Any) -> None:
        if op == "norm_b2":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(here, interrupt)
    assert list(results(here)) == ["a1"]
    here.log.clear()
    run(here)
    assert here.log[:2] == ["make norm_b2 cpu", "integrate norm_b2"]
    assert "extract b2" not in here.log
    assert list(results(here)) == ["a1", "b2", "c3"]


def test_a_trial_that_was_kept_before_a_kill_is_not_repeated(here):
    here.definitions["a1"] = "mine"
    decision = TrialDecision(verdict=TrialVerdict.KEPT, reason="faster")
    record = SimpleNamespace(plan=SimpleNamespace(entry="integrate-mine"), decision=decision)
    here.trials = SimpleNamespace(plan=lambda: None, records=lambda: {1: record})
    run(here)
    assert "integrate mine" not in here.log
    assert results(here)["a1"] == ("kept", "faster")


def test_a_region_without_a_kernel_is_passed_with_its_reason(here, monkeypatch):
    def lack(op: str, _: Any) -> None:
        if op == "norm_a1":
            raise MissingInput("mine has no folder a1 or norm_a1.")

    monkeypatch.setattr(choice, "rank_versions", lambda *_: {})
    run(here, lack)
    assert results(here)["a1"] == ("not made", "mine has no folder a1 or norm_a1")
    assert "integrate norm_a1" not in here.log
    assert results(here)["b2"][0] == "kept"


def test_a_region_that_cannot_be_extracted_is_passed_with_its_reason(here, monkeypatch):
    def refuse(*_: Any, **__: Any) -> None:
        raise Misuse("it cannot become a definition.")

    monkeypatch.setattr(extract_region, "extract_region", refuse)
    run(here)
    assert {end for end, _ in results(here).values()} == {"not made"}


def test_a_program_that_fails_with_the_kernel_is_restored(here, monkeypatch):
    here.verdicts["norm_a1"] = SolutionFailed("train.py: its step fails.")
    open_trial = SimpleNamespace(entry="integrate-norm_a1")
    here.trials = SimpleNamespace(plan=lambda: open_trial, records=dict)
    reasons = []

    def abandon(_: Any, reason: str, *, measured: bool) -> Any:
        reasons.append((reason, measured))
        decision = TrialDecision(verdict=TrialVerdict.RESTORED, reason=f"abandoned: {reason}")
        return SimpleNamespace(record=SimpleNamespace(decision=decision))

    monkeypatch.setattr(trial, "abandon_trial", abandon)
    run(here)
    assert reasons == [("train.py: its step fails", True)]
    assert results(here)["a1"][0] == "refused"
    assert results(here)["b2"][0] == "kept"


def test_it_stops_at_the_goal(here, monkeypatch):
    totals = iter([None, 1.05, 1.12])

    def total(*_: Any) -> Any:
        low = next(totals)
        return low and SimpleNamespace(comparison=SimpleNamespace(interval=SimpleNamespace(low=low)))

    monkeypatch.setattr(chain, "program_total", total)
    assert "1.1x" in run(here, goal=ProgramGoal(speedup=1.1))
    assert list(results(here)) == ["a1", "b2"]


def test_it_stops_when_the_budget_is_spent(here, monkeypatch):
    spend = Spend(
        phase="DESIGN", agent="a", models=(), turns=1, input_tokens=0, cache_write_tokens=0, cache_read_tokens=0,
        output_tokens=0, usd=2.0, seconds=1, ended="done",
    )  # fmt: skip
    monkeypatch.setattr(store, "list_campaigns", lambda _, op: [op])
    monkeypatch.setattr(campaign_state, "read_state", lambda campaign: SimpleNamespace(spent=(spend,)))
    left: list[Any] = []
    assert "$4.00" in run(here, lambda _, rest: left.append(rest), budget=4.0)
    assert left == [4.0, 2.0]
    assert list(results(here)) == ["a1", "b2"]


def test_an_agent_that_stops_ends_it_and_keeps_what_was_done(here):
    def stop(op: str, _: Any) -> None:
        if op == "norm_b2":
            raise AgentStopped("the API refused.")

    with pytest.raises(AgentStopped):
        run(here, stop)
    assert list(results(here)) == ["a1"]
