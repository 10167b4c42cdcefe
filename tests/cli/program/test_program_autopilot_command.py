"""`warpsmith program autopilot`: the plan and the table that it prints, its options and exit codes."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from warpsmith.cli import main as entry
from warpsmith.cli.campaign import optimize
from warpsmith.core.trial import TrialDecision, TrialVerdict
from warpsmith.program.autopilot import chain, plan
from warpsmith.program.autopilot.models import AutopilotPlan, PlannedRegion, RegionResult
from warpsmith.program.compiled.models import RegionRow
from warpsmith.program.trials import goal
from warpsmith.reporting.programs import fusion_ledger, program_trials
from warpsmith.reporting.programs.fusion_ledger import FusionLedger, LedgerRow
from warpsmith.use import choice

PLAN = AutopilotPlan(
    program={"name": "train.train_step", "path": "train.py", "step": "train_step"}, sha256="0" * 64,
    listed="2026-11-21 12:00", device="cpu", target="cpu", designer="drafts mine", step_seconds=4e-3,
    kernel_seconds=2e-3, made="2026-11-21 12:00",
    regions=(
        PlannedRegion(digest="12ab", kind="norm", share=0.25, ceiling=4 / 3),
        PlannedRegion(digest="34cd", kind="activation", share=0.15, ceiling=1 / 0.85),
    ),
)  # fmt: skip
RESULTS = (
    RegionResult(digest="12ab", op="norm_12ab", end="refused", reason="slower: 0.95x"),
    RegionResult(digest="34cd", op="activation_34cd", end="not made", reason="mine has no folder 34cd"),
)


def row(digest: str, share: float) -> RegionRow:
    return RegionRow(
        digest=digest, kind="norm", operators=("mul",), kernels=("k",), backward=False, calls=1, seconds=share,
        share=share, ceiling=None,
    )  # fmt: skip


def transfer() -> SimpleNamespace:
    """A kernel that gains 300 us alone and loses 200 us in the step."""
    interval = SimpleNamespace(low=0.93, high=0.97)
    return SimpleNamespace(
        real=SimpleNamespace(seconds=3e-4), measured_seconds=-2e-4,
        measured=SimpleNamespace(speedup=0.95, interval=interval),
    )  # fmt: skip


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`called(*arguments)`: the exit code of the command, in a project with `train.py` and a folder `mine`."""
    (tmp_path / "warpsmith.toml").touch()
    (tmp_path / "train.py").write_text("def train_step():\n    pass\n")
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    prepared = plan.PreparedPlan(PLAN, False, ())
    decision = TrialDecision(verdict=TrialVerdict.RESTORED, reason="slower: 0.95x")
    tried = LedgerRow(
        row("12ab", 0.25), "norm_12ab cpp/v2", True, 1, SimpleNamespace(decision=decision), transfer()
    )  # type: ignore[arg-type]
    ledger = FusionLedger(
        None, (tried, LedgerRow(row("34cd", 0.15), "", False), LedgerRow(row("56ef", 0.1), "", False))
    )  # type: ignore[arg-type]
    box = SimpleNamespace(results=RESULTS, total=None, makers=[], written=[])

    def run_plan(_project, _program, _plan, settings, make_kernel, _tell) -> str:
        box.settings = settings
        box.makers.append(make_kernel)
        return "all regions of the plan are done"

    monkeypatch.setattr(plan, "prepare_plan", lambda *_: prepared)
    monkeypatch.setattr(plan, "write_plan", lambda *given: box.written.append(given[-1]))
    monkeypatch.setattr(plan, "read_plan", lambda *_: PLAN.model_copy(update={"results": box.results}))
    monkeypatch.setattr(chain, "run_plan", run_plan)
    monkeypatch.setattr(chain, "program_total", lambda *_: box.total)
    monkeypatch.setattr(goal, "write_goal", lambda *given: box.written.append(given[-1]))
    monkeypatch.setattr(fusion_ledger, "read_ledger", lambda _: ledger)
    monkeypatch.setattr(program_trials, "write_program_page", lambda _: tmp_path / "README.md")

    def run(*arguments: str) -> int:
        words = ["warpsmith", "program", "autopilot", "train.py", "--step", "train_step", *arguments]
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as exit_:
            entry.main()
        return int(exit_.value.code or 0)

    run.box = box  # type: ignore[attr-defined]
    return run


def test_the_plan_and_the_table_say_what_came_of_each_region(called, capsys):
    assert called("--drafts", "mine", "--goal", "1.2") == 1
    text = capsys.readouterr().out
    assert "2 regions, together 40.0% of a step" in text
    assert "at most 1.67x if these took no time, 1.25x" in text
    assert "designer: drafts mine; budget: no limit in dollars; goal: 1.2x" in text
    tried, untried = (line for line in text.splitlines() if line.startswith(("12ab", "34cd")))
    assert "300 us" in tried
    assert "-200 us, 0.950x [0.930, 0.970]" in tried
    assert "refused: slower" in tried
    assert "mine has no folder 34cd" in untried
    assert "56ef" not in text
    assert "no kernel was kept" in text
    assert called.box.settings.goal.speedup == 1.2


def test_a_kept_kernel_ends_with_the_step_before_and_after(called, capsys):
    called.box.results = (RESULTS[0].model_copy(update={"end": "kept"}),)
    interval = SimpleNamespace(low=1.1, high=1.3)
    called.box.total = SimpleNamespace(
        original=SimpleNamespace(seconds=4e-3), present=SimpleNamespace(seconds=3.3e-3),
        comparison=SimpleNamespace(speedup=1.2, interval=interval),
    )  # fmt: skip
    assert called("--drafts", "mine") == 0
    assert "4.00 ms -> 3.30 ms, 1.200x [1.100, 1.300]" in capsys.readouterr().out


def test_without_a_designer_the_message_names_the_dry_run(called, capsys):
    assert called() == 2
    assert "--dry-run" in capsys.readouterr().err


def test_a_dry_run_makes_nothing_and_needs_no_designer(called, capsys):
    assert called("--dry-run") == 0
    assert called.box.makers == []
    assert called.box.written == [PLAN]
    assert called("--dry-run", "--json") == 0
    assert AutopilotPlan.model_validate_json(capsys.readouterr().out.partition("{")[2].join(("{", ""))) == PLAN


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        ((), 2, "--drafts"),
        (("--designer", "other"), 2, "other"),
        (("--designer", "drafts"), 2, "--drafts"),
        (("--drafts", "none"), 3, "none"),
        (("--drafts", "mine", "--max-budget-usd", "3"), 2, "--max-budget-usd"),
        (("--drafts", "mine", "--recording", "mine"), 2, "--recording"),
    ],
)
def test_options_that_do_not_fit_are_refused_before_anything_runs(called, capsys, arguments, code, word):
    assert called(*arguments) == code
    assert word in capsys.readouterr().err
    assert called.box.written == []


def test_drafts_are_found_by_region_and_language(called, monkeypatch, tmp_path):
    called("--drafts", "mine")
    (make,) = called.box.makers
    monkeypatch.setattr(choice, "rank_versions", lambda *_: {})
    with pytest.raises(Exception, match="no folder 12ab or norm_12ab"):
        make(PLAN.regions[0], "norm_12ab", "cpu", None)
    (tmp_path / "mine" / "12ab").mkdir()
    with pytest.raises(Exception, match="0 folders"):
        make(PLAN.regions[0], "norm_12ab", "cpu", None)
    ran = []
    monkeypatch.setattr(optimize, "run_rounds", lambda *given: ran.append(given))
    monkeypatch.setattr(choice, "rank_versions", lambda *_: {"cpu": ["an accepted version"]})
    make(PLAN.regions[0], "norm_12ab", "cpu", None)
    assert ran == []
