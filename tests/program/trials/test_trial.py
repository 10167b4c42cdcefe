from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from trial_kit import FASTER, PAUSE, TRAIN, InProcess, changed

from warpsmith import backups
from warpsmith import project as projects
from warpsmith.core.trial import ProgramRules, TrialRecord, TrialVerdict
from warpsmith.errors import Busy, CorruptRecord, MachineLacks, Misuse, SolutionFailed
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.program.process.program import resolve_step_program
from warpsmith.program.trials import graded_steps, pair_timing, trial, trial_files, trial_store, trials_total
from warpsmith.program.trials.trial import ClosedTrial, TrialRequest
from warpsmith.program.trials.trial_store import Trials
from warpsmith.project import Project

KEPT, RESTORED, INCONCLUSIVE = TrialVerdict
STOPS = "model.calls = getattr(model, 'calls', 0) + 1\n    if model.calls <= 10:\n        optimizer.step()"
"""Training that ends after the steps whose numerics are compared."""
SLOWER = ("pause(PAUSE)", "pause(PAUSE * 1.5)")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs in this process, and few short batches."""
    for module in (pair_timing, trial):
        monkeypatch.setattr(module, "open_runner", InProcess)
    monkeypatch.setattr(pair_timing, "BATCH_SECONDS", 0.005)
    monkeypatch.setattr(pair_timing, "BUDGET", TimingBudget(rounds=5, most=6, seconds=0.5, width=0.05))


@pytest.fixture
def here(tmp_path: Path) -> Project:
    (tmp_path / "warpsmith.toml").write_text("")
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "pause.py").write_text(PAUSE)
    return projects.find_project(tmp_path)


def asked(here: Project, *others: str, entry: str = "faster", **rules: object) -> TrialRequest:
    program = resolve_step_program(str(here.root / "train.py"), "train_step")
    files = (program.path, *(here.root / name for name in others))
    return TrialRequest(entry, ProgramRules.model_validate(rules), program, files)


def opened(here: Project, *others: str, **rules: object) -> Trials:
    ask = asked(here, *others, **rules)
    trial.open_trial(here, ask)
    return trial_store.program_trials(here, ask.program)


def verify(trials: Trials) -> ClosedTrial:
    return trial.verify_trial(trials)


def edit(here: Project, *edits: tuple[str, str], name: str = "train.py") -> str:
    path = here.root / name
    path.write_text(changed(path.read_text(), *edits))
    return path.read_text()


FUSED = ("lr=1e-2)", "lr=1e-2, fused=True)")


def test_an_edit_without_the_sign_of_its_optimization_is_restored_untimed(
    here: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graded_steps, "check_graded_steps", lambda *_: [])  # the other defence is off
    trials = opened(here, entry="fused-optimizer", sign="fused-step")
    edit(here, ("optimizer.step()", STOPS), FASTER)
    record = verify(trials).record
    assert record.decision.verdict is RESTORED
    assert "not the optimization that it is named after" in record.decision.reason
    assert record.sign is not None
    assert (record.sign.name, record.sign.state, record.comparisons) == ("fused-step", "no", ())


def test_the_sign_of_an_optimization_is_recorded(here: Project) -> None:
    trials = opened(here, entry="fused-optimizer", sign="fused-step")
    edit(here, FUSED, FASTER)
    record = verify(trials).record
    assert record.decision.verdict is KEPT
    assert record.sign is not None
    assert record.sign.state == "ok"
    assert "fused=True 0 before and 6 after" in record.sign.evidence


def test_a_file_that_changes_meanwhile_stops_the_judgement_early(
    here: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = opened(here)
    edit(here, FASTER)
    told: list[str] = []

    def tell(text: str) -> None:
        told.append(text)
        if len(told) == 1:
            (here.root / "train.py").write_text((here.root / "train.py").read_text() + "# a comment\n")

    with pytest.raises(Misuse, match="changed while it was being judged"):
        trial.verify_trial(trials, tell=tell)
    assert len(told) == 1
    assert trials.plan() is not None


def test_a_faster_program_is_kept(here: Project) -> None:
    trials = opened(here)
    text = edit(here, FASTER)
    closed = verify(trials)
    assert closed.record.decision.verdict is KEPT
    assert len(closed.record.comparisons) == 2  # of fresh processes
    assert closed.record.measured is not None
    assert closed.record.measured.speedup == pytest.approx(2)
    assert (here.root / "train.py").read_text() == text
    assert backups.standing_backups(here) == ()
    assert trials.plan() is None
    assert trials.records() == {1: closed.record}
    assert (closed.folder / "before-0").read_text() == TRAIN
    assert (closed.folder / "after-0").read_text() == text


@pytest.mark.parametrize(
    ("edits", "reason"),
    [
        ([("loss.backward()", "loss.backward(); model[2].bias.grad = None"), FASTER], "wrong numerics"),
        ([("torch.randn(32", "torch.randn(16"), ("(32,)", "(16,)")], "wrong numerics"),
        ([("optimizer.step()", STOPS), FASTER], "wrong numerics: timed"),
        ([SLOWER], "slower"),
        ([("loss = F", "pass; loss = F")], "no gain"),
    ],
)
def test_what_is_wrong_or_no_faster_is_restored(here: Project, edits: list[tuple[str, str]], reason: str) -> None:
    trials = opened(here)
    edit(here, *edits)
    closed = verify(trials)
    assert closed.record.decision.verdict is RESTORED
    assert closed.record.decision.reason.startswith(reason)
    assert (here.root / "train.py").read_text() == TRAIN
    assert [one.how for one in closed.restored] == ["original"]
    assert backups.standing_backups(here) == ()


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    "condition", ["model.calls <= 700", "model.calls // 7 < 100", "(model.calls - 700) * 9 < 0"]
)
def test_training_that_stops_long_after_the_timed_steps(
    here: Project, monkeypatch: pytest.MonkeyPatch, condition: str, together: bool
) -> None:
    if not together:
        monkeypatch.setattr(pair_timing, "_time_together", lack_memory)
    trials = opened(here)
    edit(here, ("optimizer.step()", STOPS.replace("model.calls <= 10", condition)), FASTER)
    record = verify(trials).record
    assert record.decision.verdict is RESTORED
    assert any(f"timed movement: step {n}" in record.decision.reason for n in (699, 700, 701))
    assert any("700" in note and "were graded" in note for note in record.notes)


def test_a_number_of_the_edit_that_no_step_reaches_is_named(here: Project) -> None:
    trials = opened(here)
    edit(here, ("optimizer.step()", STOPS.replace("<= 10", "<= 70_000_000")), FASTER)
    record = verify(trials).record
    assert record.decision.verdict is KEPT
    assert any("70000000" in note and "no graded step" in note for note in record.notes)


def lack_memory(*_: object) -> None:
    """Raise what two programs that do not fit together raise."""
    raise MachineLacks("out of memory")


def test_memory_may_cost_time_where_that_was_agreed(here: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = iter([100] * 200)
    monkeypatch.setattr(
        InProcess,
        "call",
        _held(InProcess.call, lambda runner: 40 if runner.child and _edited(runner) else next(peaks)),
    )
    ask = replace(asked(here, purpose="memory"), slower=0.6)
    trial.open_trial(here, ask)
    edit(here, SLOWER)
    closed = verify(trial_store.program_trials(here, ask.program))
    assert closed.record.decision.reason.startswith("peak memory -60.0% at 0.")
    assert closed.record.decision.verdict is KEPT


def _edited(runner: InProcess) -> bool:
    return any("after-" in copy for copy in runner._message["original"].values())


def _held(call: Callable[..., object], peak: Callable[[InProcess], int]) -> Callable[..., object]:
    return lambda self, task, **args: peak(self) if task == "reserved_memory" else call(self, task, **args)


def test_predicted_stands_beside_measured(here: Project) -> None:
    trial.open_trial(here, replace(asked(here), predicted=1.5))
    edit(here, FASTER)
    record = verify(trial_store.program_trials(here, asked(here).program)).record
    assert record.plan.predicted == 1.5
    assert record.measured is not None
    assert record.measured.speedup == pytest.approx(2)


def test_a_trial_without_an_edit_is_refused(here: Project) -> None:
    trials = opened(here)
    with pytest.raises(Misuse, match=r"Nothing was edited: train\.py"):
        verify(trials)
    assert trials.plan() is not None


def test_an_edit_elsewhere_is_refused_with_its_path(here: Project) -> None:
    trials = opened(here)
    edit(here, FASTER)
    edit(here, ("0.004", "0.001"), name="pause.py")
    with pytest.raises(Misuse, match=r"^pause\.py was edited too"):
        verify(trials)
    assert trials.plan() is not None


def test_a_new_file_that_is_not_named_is_refused(here: Project) -> None:
    trials = opened(here)
    (here.root / "helper.py").write_text("HALF = 0.5\n")
    edit(here, ("from pause", "from helper import HALF\nfrom pause"), ("pause(PAUSE)", "pause(PAUSE * HALF)"))
    with pytest.raises(Misuse, match=r"^helper\.py was edited too"):
        verify(trials)


def test_a_new_file_that_is_named_goes_with_the_trial(here: Project) -> None:
    trials = opened(here, "helper.py")
    (here.root / "helper.py").write_text("HALF = 2\n")
    edit(here, ("from pause", "from helper import HALF\nfrom pause"), ("pause(PAUSE)", "pause(PAUSE * HALF)"))
    assert verify(trials).record.decision.verdict is RESTORED
    assert not (here.root / "helper.py").exists()
    assert (here.root / "train.py").read_text() == TRAIN


def test_a_helper_that_was_there_before_may_be_imported(here: Project) -> None:
    (here.root / "helper.py").write_text("HALF = 0.5\n")
    os.utime(here.root / "helper.py", (1e9, 1e9))
    trials = opened(here)
    edit(here, ("from pause", "from helper import HALF\nfrom pause"), ("pause(PAUSE)", "pause(PAUSE * HALF)"))
    assert verify(trials).record.decision.verdict is KEPT


def test_a_program_that_fails_leaves_the_trial_open(here: Project) -> None:
    trials = opened(here)
    text = edit(here, ("return loss", "return los"))
    with pytest.raises(SolutionFailed, match="The trial stays open"):
        verify(trials)
    assert (here.root / "train.py").read_text() == text
    assert trials.plan() is not None
    edit(here, ("return los", "return loss"), FASTER)
    assert verify(trials).record.decision.verdict is KEPT


def test_abandoning_puts_the_files_back_and_says_why(here: Project) -> None:
    trials = opened(here)
    edit(here, ("return loss", "return los"))
    with pytest.raises(Misuse, match="The reason states `9x`"):
        trial.abandon_trial(trials, "it was only 9x faster")
    closed = trial.abandon_trial(trials, "the graph cannot hold it")
    assert closed.record.decision.reason == "abandoned: the graph cannot hold it"
    assert (here.root / "train.py").read_text() == TRAIN
    assert trials.records() == {1: closed.record}


def test_one_trial_at_a_time(here: Project) -> None:
    opened(here)
    with pytest.raises(Misuse, match=r"train\.train_step has an open trial of faster on train"):
        opened(here, entry="another")


def test_applying_again_goes_on_with_the_open_trial(here: Project) -> None:
    trials = opened(here)
    plan = trials.plan()
    edit(here, FASTER)
    assert opened(here).plan() == plan
    assert len(backups.standing_backups(here)) == 1


def killed_before_the_plan(monkeypatch: pytest.MonkeyPatch, here: Project) -> None:
    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Trials, "publish", die)
        with pytest.raises(Killed):
            opened(here)


def test_an_apply_that_was_killed_leaves_a_backup_that_the_next_one_takes(
    here: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_before_the_plan(monkeypatch, here)
    assert len(backups.standing_backups(here)) == 1
    trials = opened(here)
    assert len(backups.standing_backups(here)) == 1
    trial.abandon_trial(trials, "")
    killed_before_the_plan(monkeypatch, here)
    edit(here, FASTER)
    with pytest.raises(Misuse, match=r"unfinished `apply`.*`warpsmith restore`.*train\.py"):
        opened(here)


def test_a_backup_that_was_taken_back_by_hand_ends_the_trial(here: Project) -> None:
    trials = opened(here)
    backups.keep_edits(here, [here.root / "train.py"])
    edit(here, FASTER)
    with pytest.raises(Misuse, match="no longer has a backup"):
        verify(trials)
    with pytest.raises(Misuse, match="changed and has no backup"):
        opened(here)
    trial.abandon_trial(trials, "")
    assert trials.plan() is None


def test_a_newer_backup_of_a_file_comes_first(here: Project) -> None:
    trials = opened(here)
    edit(here, FASTER)
    backups.open_backups(here, [here.root / "train.py"], "mine")
    with pytest.raises(Misuse, match=r"train\.py has a newer backup \(0002 mine\)"):
        verify(trials)
    backups.keep_edits(here, [here.root / "train.py"])
    assert verify(trials).record.decision.verdict is KEPT


def test_a_prerequisite_that_does_not_hold_refuses_and_leaves_nothing(here: Project) -> None:
    with pytest.raises(MachineLacks, match="faster requires that the step runs on a GPU"):
        opened(here, needs=["gpu"])
    with pytest.raises(Misuse, match="faster requires that the step has 2-D or 3-D convolutions"):
        opened(here, needs=["convolutions"])
    assert backups.standing_backups(here) == ()
    assert trial_store.list_trials(here) == []
    trial.open_trial(here, replace(asked(here, needs=["convolutions"]), ignore_unmet=True))


def test_a_loss_that_is_nan_before_any_edit_is_refused(here: Project) -> None:
    edit(here, ("return loss", "return loss * float('nan')"))
    with pytest.raises(Misuse, match=r"train\.py: step \d+ returns NaN"):
        opened(here)
    assert backups.standing_backups(here) == ()


def test_a_step_that_shows_nothing_is_refused(here: Project) -> None:
    edit(here, ("    optimizer.step()\n    return loss", "    return None"))
    with pytest.raises(Misuse, match="returns no number and steps no optimizer"):
        opened(here)


def test_a_link_is_refused(here: Project) -> None:
    (here.root / "link").symlink_to(here.root / "pause.py")
    with pytest.raises(Misuse, match="link is a link"):
        opened(here, "link")


def meanwhile(monkeypatch: pytest.MonkeyPatch, here: Project, *edits: tuple[str, str]) -> None:
    """Somebody edits the program once the edit is judged."""
    settled = trial.core.decide_trial

    def decide(*args: object) -> object:
        edit(here, *edits)
        monkeypatch.setattr(trial.core, "decide_trial", settled)
        return settled(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(trial.core, "decide_trial", decide)


def test_what_somebody_else_changed_meanwhile_stays(here: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = opened(here)
    edit(here, SLOWER)
    meanwhile(monkeypatch, here, ("model = nn", "# the model\nmodel = nn"))
    closed = verify(trials)
    assert [one.how for one in closed.restored] == ["merged"]
    assert (here.root / "train.py").read_text() == changed(TRAIN, ("model = nn", "# the model\nmodel = nn"))


def test_a_conflict_is_shown_and_the_trial_goes_on_from_there(
    here: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = opened(here)
    text = edit(here, SLOWER)
    meanwhile(monkeypatch, here, ("PAUSE * 1.5", "PAUSE * 1.6"))
    with pytest.raises(backups.RestoreConflict, match="The trial stays open") as conflict:
        verify(trials)
    assert "+    pause(PAUSE * 1.6)" in conflict.value.diffs
    (here.root / "train.py").write_text(text)
    assert verify(trials).record.decision.reason.startswith("slower")
    assert (here.root / "train.py").read_text() == TRAIN


def test_a_program_that_changed_while_it_was_judged_is_not_kept(
    here: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = opened(here)
    edit(here, FASTER)
    meanwhile(monkeypatch, here, ("model = nn", "# the model\nmodel = nn"))
    with pytest.raises(Misuse, match=r"train\.py changed while it was being judged"):
        verify(trials)
    assert verify(trials).record.decision.verdict is KEPT


class Killed(BaseException):
    """Stands for kill -9."""


def kill_at(monkeypatch: pytest.MonkeyPatch, count: int) -> list[str]:
    """Die before the n-th rename or replacement."""
    seen: list[str] = []

    def dying(name: str, call: Callable[..., object]) -> Callable[..., object]:
        def run(*args: object, **options: object) -> object:
            if ".warpsmith/programs" not in str(args):
                seen.append(f"{name} {args[-1]}")
                if len(seen) == count:
                    raise Killed
            return call(*args, **options)

        return run

    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, dying(name, getattr(os, name)))
    return seen


@pytest.mark.parametrize("faster", [True, False])
def test_killed_at_any_place_the_same_commands_go_on(
    here: Project, monkeypatch: pytest.MonkeyPatch, faster: bool
) -> None:
    plan = trial._plan_trial(here, asked(here), 60, lambda _: None)
    monkeypatch.setattr(trial, "_plan_trial", lambda *_: plan)
    monkeypatch.setattr(trial, "_judge_edit", _judgement(faster))
    for count in range(1, 40):
        with monkeypatch.context() as patch:
            seen = kill_at(patch, count)
            try:
                _whole(here, faster)
                break
            except Killed:
                pass
        _whole(here, faster)
        trials = trial_store.program_trials(here, asked(here).program)
        text = (here.root / "train.py").read_text()
        assert text == (changed(TRAIN, FASTER) if faster else TRAIN), seen
        assert backups.standing_backups(here) == ()
        assert trials.plan() is None
        (here.root / "train.py").write_text(TRAIN)
    assert count > 5
    assert not list(here.devlog.rglob(".tmp-*"))


def _whole(here: Project, faster: bool) -> None:
    trials = trial_store.program_trials(here, asked(here).program)
    done = len(trials.records())
    if not trials.verdict():
        opened(here)
        (here.root / "train.py").write_text(changed(TRAIN, FASTER if faster else SLOWER))
    verify(trials)
    assert len(trials.records()) == done + 1


NUMERICS = {
    "precision": "same",
    "steps": 8,
    "seed": 1,
    "checks": [{"name": "values", "worst": 0, "bound": 1, "noise": 0}],
}
COMPARISON = {
    "against": "original",
    "other_seconds": 1,
    "speedup": 1.5,
    "interval": {"low": 1, "high": 2},
    "pairs": 5,
}


def _judgement(faster: bool) -> Callable[..., TrialRecord]:
    """A judgement without a measurement, after the real one's own writes."""

    def judged(trials: Trials, plan: trial.TrialPlan, *_: object) -> TrialRecord:
        trial_files.refuse_invalid_edit(trials, plan)
        plan = trial_files.snapshot_edit(trials, plan)
        backups.seal_backups(trials.project, trial_files.editable_paths(trials, plan))
        return TrialRecord.model_validate(
            {
                "plan": plan.model_dump(),
                "decision": {"verdict": KEPT if faster else RESTORED, "reason": "-"},
                "comparisons": [COMPARISON],
                "numerics": NUMERICS,
                "closed": "2026-11-21 12:00",
            }
        )

    return judged


def test_the_sum_is_the_first_original_against_the_program_as_it_is(here: Project) -> None:
    trials = opened(here)
    edit(here, FASTER)
    verify(trials)
    opened(here, entry="second")
    edit(here, ("pause(PAUSE / 2)", "pause(PAUSE / 4)"))
    verify(trials)
    found = trials_total.measure_total(trials)
    assert found is not None
    assert found == trials.total()
    assert found.comparison.speedup == pytest.approx(4)
    assert found.files == trials_total.present_files(trials)
    edit(here, ("model = nn", "# the model\nmodel = nn"))
    assert found.files != trials_total.present_files(trials)


def test_there_is_no_sum_where_nothing_was_kept(here: Project) -> None:
    trials = opened(here)
    with pytest.raises(Misuse, match="has an open trial"):
        trials_total.measure_total(trials)
    trial.abandon_trial(trials, "")
    assert trials_total.measure_total(trials) is None


def test_what_a_killed_process_had_started_is_waited_for(here: Project, dying) -> None:
    with trial_store.lock_programs(here):
        pass
    dying(here.root / ".warpsmith" / "program.lock")
    with trial_store.lock_programs(here):
        pass


def test_two_at_once_are_refused(here: Project) -> None:
    trials = opened(here)
    with trial_store.lock_programs(here), pytest.raises(Busy, match="programs is held by process"):
        verify(trials)


def test_a_record_that_was_edited_by_hand_is_named(here: Project) -> None:
    trials = opened(here)
    plan = trials.open / trial_store.PLAN
    plan.write_text(plan.read_text().replace('"entry"', '"entri"'))
    with pytest.raises(CorruptRecord, match=r"plan\.json does not read"):
        verify(trials)


def test_which_program_is_meant(here: Project) -> None:
    with pytest.raises(Misuse, match="No program has a trial"):
        trial_store.find_trials(here)
    opened(here)
    assert trial_store.find_trials(here).name == "train.train_step"
    for text in (str(here.root / "train.py"), "train", f"{here.root}/train.py:train_step"):
        assert trial_store.find_trials(here, text).name == "train.train_step"
    with pytest.raises(Misuse, match=r"programs: train\.train_step"):
        trial_store.find_trials(here, "other")
