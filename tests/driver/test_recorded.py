"""The recorded designer: it plays designs, hypotheses and lessons, and no measurement."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warpsmith.campaign import start
from warpsmith.core.campaign import Lesson
from warpsmith.core.evaluation import Verdict
from warpsmith.driver.optimize import run_loop
from warpsmith.driver.recorded_designer import RecordedDesigner
from warpsmith.errors import CorruptRecord, MissingInput


@pytest.fixture
def recording(project: Any, designer: Any, lab: Any, make: Any) -> Any:
    """A campaign of three rounds, the second rolled back."""
    lab.verdicts = {"v2": "ROLLBACK"}
    made = start.start_campaign(project, make.OP, "cpu", "toy", max_iterations=3)
    run_loop(made, designer)
    lab.verdicts = {}
    lab.judged.clear()
    return made


@pytest.fixture
def stage(tmp_path: Path, make: Any) -> Any:
    """A new campaign of another project, to play on."""
    return start.start_campaign(make.make_project(tmp_path / "stage"), make.OP, "cpu", "toy")


def test_it_plays_every_round_and_measures_anew(recording: Any, stage: Any, lab: Any):
    end = run_loop(stage, RecordedDesigner(recording.folder))
    old = recording.records()
    assert [record.solution for record in end.records] == [record.solution for record in old]
    assert [record.plan for record in end.records] == [record.plan for record in old]
    assert [record.selection for record in end.records][1:] == [record.selection for record in old][1:]
    assert [record.snapshot_sha256 for record in end.records] == [record.snapshot_sha256 for record in old]
    assert lab.judged == ["v1", "v2", "v3"]
    assert [record.outcome.verdict for record in end.records] == ["ACCEPT"] * 3


def test_a_lesson_is_dropped_where_the_verdict_differs(recording: Any, stage: Any):
    end = run_loop(stage, RecordedDesigner(recording.folder))
    assert end.records[0].lesson.reason == "It was known already."
    assert end.records[1].lesson.action == "nothing"
    assert "The verdict is ACCEPT, but ROLLBACK in the recording" in end.records[1].lesson.reason


def test_figures_that_this_run_has_not_measured_are_left_out(recording: Any):
    player = RecordedDesigner(recording.folder)
    record = player._turns[0].record
    lesson = Lesson(action="nothing", reason="It took 9.7 us before. Wider is better.")
    plan = record.plan.model_copy(update={"hypothesis": "It saves 3 us a call.", "search_log": ("a page, 3x",)})
    player._turns = [SimpleNamespace(record=record.model_copy(update={"lesson": lesson, "plan": plan}))]
    now = SimpleNamespace(rounds=(), open=SimpleNamespace(outcome=None))
    assert player.learn(now, None).text == "Wider is better."
    assert player.plan(now, None).hypothesis == f"As recorded: {plan.category}."
    assert player.plan(now, None).search_log == ()


def test_it_is_finished_after_the_last_recorded_round(recording: Any, stage: Any):
    player = RecordedDesigner(recording.folder)
    assert player.language == "toy"
    assert player.finished(SimpleNamespace(rounds=(1, 2))) is None
    assert player.finished(SimpleNamespace(rounds=(1, 2, 3))) == "all 3 recorded rounds have been played"


def test_an_interrupted_play_goes_on(recording: Any, stage: Any, lab: Any, monkeypatch: pytest.MonkeyPatch):
    def dies(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RecordedDesigner, "plan", dies)
        with pytest.raises(KeyboardInterrupt):
            run_loop(stage, RecordedDesigner(recording.folder))
    assert len(run_loop(stage, RecordedDesigner(recording.folder)).records) == 3
    assert lab.judged == ["v1", "v2", "v3"]


@pytest.mark.parametrize(
    ("lesson", "expected"),
    [
        (Lesson(action="add", entry="wide", reason="It held here too."), ("refine", "wide")),
        (Lesson(action="refine", entry="wide", reason="It held here too."), ("refine", "wide")),
        (Lesson(action="refute", entry="wide", reason="It held not at all."), ("refute", "wide")),
        (Lesson(action="nothing", reason="It was known already."), ("nothing", None)),
    ],
)
def test_lessons_refine_what_is_there_already(recording: Any, lesson: Lesson, expected: tuple[str, str | None]):
    player = RecordedDesigner(recording.folder)
    kept = player._turns[0]
    turn = SimpleNamespace(record=kept.record.model_copy(update={"lesson": lesson}))
    player._turns = [turn]
    for verdict in (Verdict.ACCEPT, Verdict.ACCEPT_WITH_NOTE):
        now = SimpleNamespace(rounds=(), open=SimpleNamespace(outcome=SimpleNamespace(verdict=verdict)))
        found = player.learn(now, None)
        assert (found.action, found.entry, found.text) == (*expected, lesson.reason)


def test_a_recording_without_rounds_is_refused(stage: Any):
    with pytest.raises(MissingInput, match="holds no closed round to play"):
        RecordedDesigner(stage.folder)


def test_a_corrupt_recording_is_refused(recording: Any):
    path = recording.rounds / "002" / "record.json"
    path.write_bytes(path.read_bytes().replace(b"Hypothesis", b"hypothesis"))
    with pytest.raises(CorruptRecord, match="002"):
        RecordedDesigner(recording.folder)
