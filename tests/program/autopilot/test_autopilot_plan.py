"""The plan of an autopilot: which regions it takes, and when it goes on or is made anew."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warpsmith import files
from warpsmith import project as projects
from warpsmith.core.trial import TrialVerdict
from warpsmith.errors import CorruptRecord, Misuse, SolutionFailed
from warpsmith.program.analysis import analysis_store, analyzer, region_file
from warpsmith.program.autopilot import plan as plans
from warpsmith.program.autopilot.models import AutopilotPlan, RegionResult
from warpsmith.program.compiled.models import RegionRow, StepRegions
from warpsmith.program.operators import accepted_regions
from warpsmith.program.process.program import resolve_step_program
from warpsmith.program.regions import survey
from warpsmith.program.trials import next_action
from warpsmith.project import Project


def row(digest: str, share: float, **changes: Any) -> RegionRow:
    return RegionRow(
        digest=digest, kind="norm", operators=("mul",), kernels=("k",), backward=False, calls=1, seconds=share,
        share=share, ceiling=1 / (1 - share), **changes,
    )  # fmt: skip


def step(*rows: RegionRow) -> StepRegions:
    return StepRegions(
        program="train.py", device="cpu", torch="2", graphs=1, step_seconds=1, kernel_seconds=0.4, rows=rows,
        measured="2026-11-21 12:00",
    )  # fmt: skip


REGIONS = step(
    row("", 0.3, refusal="draws random numbers"), row("12ab", 0.25), row("34cd", 0.2), row("56ef", 0.01)
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A program whose analysis and regions are scripted; `listings` counts how often they were measured."""
    (tmp_path / "warpsmith.toml").touch()
    (tmp_path / "train.py").write_text("def train_step():\n    pass\n")
    project = projects.find_project(tmp_path)
    program = resolve_step_program(str(tmp_path / "train.py"), "train_step")
    analysis = SimpleNamespace(broken=False)
    state = SimpleNamespace(
        name="train.train_step", analysis=analysis, plan=None, records=[], listings=0, rows=REGIONS
    )

    def list_regions(project: Project, program: Any, *_: Any, **__: Any) -> StepRegions:
        state.listings += 1
        region_file.write_regions(project, program, state.rows)
        regions: StepRegions = state.rows
        return regions

    monkeypatch.setattr(next_action, "read_program_state", lambda *_: state)
    monkeypatch.setattr(next_action, "choose_action", lambda state: SimpleNamespace(action="work"))
    monkeypatch.setattr(next_action, "rank_recommendations", lambda *_: ())
    monkeypatch.setattr(survey, "list_regions", list_regions)
    monkeypatch.setattr(accepted_regions, "list_definitions", lambda _: {"12ab": "mine"})
    return SimpleNamespace(project=project, program=program, state=state, file=tmp_path / "train.py")


def prepared(here: SimpleNamespace, most: int = 3, designer: str = "drafts mine") -> plans.PreparedPlan:
    return plans.prepare_plan(here.project, here.program, designer, most, 1.0, lambda _: None)


def finish(here: SimpleNamespace, plan: AutopilotPlan, **ends: Any) -> None:
    """Write the plan with results by digest, the way the chain does."""
    results = tuple(
        RegionResult(digest=d.lstrip("_"), op="", end=end, reason="it is so") for d, end in ends.items()
    )
    sha256 = files.file_sha256(here.file)
    plans.write_plan(here.project, here.program, plan.model_copy(update={"results": results, "sha256": sha256}))


def test_a_plan_takes_the_largest_regions_that_are_due(here):
    plan = prepared(here).plan
    assert [region.digest for region in plan.regions] == ["12ab", "34cd"]
    assert (plan.target, plan.device, plan.designer) == ("cpu", "cpu", "drafts mine")
    assert plan.share == pytest.approx(0.4)  # what all kernels take
    assert plan.bound == pytest.approx(1 / 0.6)
    assert [region.digest for region in prepared(here, most=1).plan.regions] == ["12ab"]


def test_a_step_that_compiles_nothing_has_an_analysis(here, monkeypatch):
    def list_regions(*_: Any, **__: Any) -> StepRegions:
        raise Misuse("train.py: the step compiles no graph.")

    monkeypatch.setattr(survey, "list_regions", list_regions)
    with pytest.raises(Misuse, match=r"compiles no graph\..*program next train\.train_step"):
        prepared(here)


def test_an_unfinished_plan_goes_on_while_the_file_is_the_same(here):
    finish(here, prepared(here).plan, _12ab="refused")
    again = prepared(here)
    assert again.continues
    assert [region.digest for region in again.plan.regions_left] == ["34cd"]
    assert here.state.listings == 1
    here.file.write_text("def train_step():\n    return 1\n")
    changed = prepared(here)
    assert (changed.continues, here.state.listings) == (False, 2)


def test_a_kernel_that_was_kept_before_a_kill_changes_no_plan(here):
    plan = prepared(here).plan
    finish(here, plan, _12ab="refused")
    here.file.write_text("from warpsmith import enable\n\n\ndef train_step():\n    pass\n")
    file = SimpleNamespace(path="train.py", before=plan.sha256, after=files.file_sha256(here.file))
    trial = SimpleNamespace(entry="integrate-mine", files=[file])
    here.state.plan = trial
    assert prepared(here).continues
    here.state.plan = None
    decision = SimpleNamespace(verdict=TrialVerdict.KEPT)
    here.state.records.append(SimpleNamespace(plan=trial, decision=decision, closed=plan.made))
    assert prepared(here).continues
    assert here.state.listings == 1


def test_a_region_without_a_kernel_is_due_again_for_another_designer(here):
    finish(here, prepared(here, most=1).plan, _12ab="not made")
    assert [region.digest for region in prepared(here).plan.regions] == ["34cd"]
    other = prepared(here, designer="claude").plan
    assert [region.digest for region in other.regions] == ["12ab", "34cd"]
    finish(here, other, _12ab="not made", _34cd="not made")
    done = prepared(here, designer="claude")
    assert (done.continues, done.plan.regions_left) == (True, ())
    assert here.state.listings == 1


def test_a_step_without_a_region_of_some_size_is_refused(here):
    here.state.rows = step(row("56ef", 0.01))
    with pytest.raises(Misuse, match=r"2% of the step, the largest 1\.0%"):
        prepared(here)


def test_a_step_whose_regions_are_all_refused_says_why(here):
    here.state.rows = step(row("", 0.5, refusal="draws random numbers"), row("", 0.3, refusal="is large"))
    with pytest.raises(Misuse, match="the largest because it draws random numbers"):
        prepared(here)


def test_a_trial_of_something_else_comes_first(here):
    here.state.plan = SimpleNamespace(entry="fused-optimizer", files=[])
    with pytest.raises(Misuse, match="fused-optimizer"):
        prepared(here)
    assert here.state.listings == 0


def test_a_changed_program_is_analyzed_first_and_must_not_be_broken(here, monkeypatch):
    made: list[Any] = []
    monkeypatch.setattr(next_action, "choose_action", lambda state: SimpleNamespace(action="analyze"))
    monkeypatch.setattr(analyzer, "analyze_program", lambda *_, **__: "analysis")
    monkeypatch.setattr(analysis_store, "write_analysis", lambda *given: made.append(given[-1]))
    prepared(here)
    assert made == ["analysis"]
    here.state.analysis.broken = True
    here.file.write_text("")
    with pytest.raises(SolutionFailed, match="NaN"):
        prepared(here)


def test_a_plan_that_does_not_read_is_named(here):
    prepared(here)
    path = analysis_store.program_folder(here.project, here.program) / plans.PLAN_FILE
    path.write_text("{}")
    with pytest.raises(CorruptRecord, match=r"autopilot\.json"):
        prepared(here)
