from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from trial_kit import FACTS

from warpsmith import project as projects
from warpsmith.core.trial import ProgramRules, TrialPlan, TrialRecord
from warpsmith.errors import MissingInput
from warpsmith.program.analysis.models import Analysis, Recommendation, amdahl_bound, impact_level
from warpsmith.program.analysis.models import AnalyzedProgram as Analysed
from warpsmith.program.trials import next_action
from warpsmith.program.trials.next_action import ProgramState

RULES = {
    "graphs": ProgramRules(after=("fused", "bf16"), excludes=("compile",)),
    "compile": ProgramRules(after=("bf16",)),
    "fused": ProgramRules(),
    "bf16": ProgramRules(precision="bf16"),
    "pool": ProgramRules(purpose="memory"),
}


def recommendation(entry: str | None, share: float, effort: str = "Low", risk: str = "Low") -> Recommendation:
    return Recommendation(
        title=str(entry), entry=entry, impact=impact_level(share), share=share, ceiling=amdahl_bound(share),
        effort=effort, risk=risk, specialist="optimize", evidence=f"{share:.0%} of the step", task="Do it.",
    )  # type: ignore[arg-type]  # fmt: skip


def analysis(*given: Recommendation, **changes: object) -> Analysis:
    fields = {
        "subject": Analysed(label="train.py", path="train.py", sha256="0" * 64, step="step", args=("--lr", "1")),
        "made": "2026-11-21 12:00", "recommendations": given, "broken": False, "facts": FACTS, **changes,
    }  # fmt: skip
    return Analysis.model_construct(**fields)


def record(entry: str, verdict: str, reason: str = "no gain: 1.00x", right: bool = True, closed: str = "11:00"):
    return TrialRecord.model_validate(
        {
            "plan": plan(entry).model_dump(),
            "decision": {"verdict": verdict, "reason": reason},
            "comparisons": [
                {"against": "original", "other_seconds": 1, "speedup": 1, "interval": {"low": 1, "high": 1},
                 "pairs": 5}
            ],
            "numerics": {
                "precision": "same", "steps": 8, "seed": 1,
                "checks": [{"name": "values", "worst": 0 if right else 2, "bound": 1, "noise": 0}],
            },
            "closed": f"2026-11-21 {closed}",
        }
    )  # fmt: skip


def plan(entry: str) -> TrialPlan:
    return TrialPlan.model_validate(
        {
            "entry": entry, "rules": RULES[entry].model_dump(), "others": {}, "device": "cpu",
            "subject": {"name": "train", "path": "train.py", "step": "step", "args": ["--lr", "1"]},
            "files": [{"path": "train.py", "before": "0" * 64}], "opened": "2026-11-21 11:00",
            "prerequisites": {"entry": entry, "checks": []},
            "baseline": {"seconds": 1, "spread": 0, "batches": 5, "steps": 1, "first_seconds": 1, "warm_up": 1},
        }
    )  # fmt: skip


def state(*records: TrialRecord, **changes: object) -> ProgramState:
    given = (recommendation("graphs", 0.5), recommendation("fused", 0.25), recommendation(None, 0.3))
    base = ProgramState("train", analysis(*given), False, None, records, RULES)
    return replace(base, **changes)  # type: ignore[arg-type]


def standings(at: ProgramState) -> list[tuple[str | None, str]]:
    assert at.analysis is not None
    return [(one.entry, one.standing) for one in next_action.rank_recommendations(at, at.analysis)]


def test_an_open_trial_is_judged_first():
    due = next_action.choose_action(state(plan=plan("fused")))
    assert (due.action, due.command) == ("verify", "warpsmith program verify train")
    assert "edit train.py" in due.why


def test_without_an_analysis_there_is_nothing_to_rank():
    due = next_action.choose_action(state(analysis=None))
    assert (due.action, due.command) == ("analyze", "warpsmith program analyze PROGRAM --step STEP")
    known = next_action.choose_action(state(record("fused", "RESTORED"), analysis=None))
    assert known.command == "warpsmith program analyze train.py --step step -- --lr 1"


@pytest.mark.parametrize(
    "at", [state(changed=True), state(record("fused", "KEPT", "faster: 1.2x", closed="12:01"))]
)
def test_a_program_that_changed_is_analysed_again(at):
    due = next_action.choose_action(at)
    assert (due.action, due.command) == ("analyze", "warpsmith program analyze train.py --step step -- --lr 1")


def test_a_nan_is_mended_before_anything_else():
    assert next_action.choose_action(state(analysis=analysis(broken=True))).action == "mend"


def test_what_comes_first_does_with_a_comparable_gain():
    due = next_action.choose_action(state())
    assert due.action == "apply"
    assert due.command == "warpsmith program apply fused train.py --step step -- --lr 1"
    assert standings(state()) == [("fused", "due"), ("graphs", "waits"), (None, "by hand")]
    assert "fused comes first" in str(due.candidates)


def test_a_small_gain_never_goes_before_a_large_one():
    at = state(analysis=analysis(recommendation("graphs", 0.42), recommendation("fused", 0.01)))
    assert standings(at) == [("graphs", "due"), ("fused", "due")]
    below = state(analysis=analysis(recommendation("graphs", 0.42), recommendation("fused", 0.2)))
    assert standings(below)[0] == ("graphs", "due")


def test_a_kept_entry_is_due_again_while_a_later_analysis_names_lines():
    loop = recommendation("fused", 0.3).model_copy(update={"lines": ("train.py:12",)})
    kept = record("fused", "KEPT", "faster: 1.2x", closed="11:59")
    assert standings(state(kept, analysis=analysis(loop))) == [("fused", "due")]
    assert "these lines remain" in next_action.choose_action(state(kept, analysis=analysis(loop))).why
    assert standings(state(kept, analysis=analysis(recommendation("fused", 0.3)))) == [("fused", "kept")]
    stale = analysis(loop, made="2026-11-21 11:59")
    assert standings(state(kept, analysis=stale)) == [("fused", "kept")]
    worse = record("fused", "RESTORED", closed="11:59")
    assert standings(state(kept, worse, analysis=analysis(loop))) == [("fused", "kept")]


def test_what_waits_is_due_once_the_other_was_tried():
    for verdict in ("KEPT", "RESTORED"):
        due = next_action.choose_action(state(record("fused", verdict)))
        assert due.command.startswith("warpsmith program apply graphs ")


def test_impact_then_share_then_effort_then_risk_decide():
    given = [
        recommendation("compile", 0.3, "Low", "Medium"), recommendation("bf16", 0.3, "Low", "Low"),
        recommendation("fused", 0.04, "Low"), recommendation("pool", 0.3, "Medium"),
    ]  # fmt: skip
    at = state(analysis=analysis(*given), rules={name: ProgramRules() for name in RULES})
    assert [entry for entry, _ in standings(at)] == ["bf16", "compile", "pool", "fused"]


def test_two_that_exclude_each_other_are_not_both_kept():
    at = state(record("graphs", "KEPT"), analysis=analysis(recommendation("compile", 0.4)))
    assert standings(at) == [("compile", "excluded")]
    other = state(record("compile", "KEPT"), analysis=analysis(recommendation("graphs", 0.4)))
    assert standings(other) == [("graphs", "excluded")]


def test_what_was_restored_is_not_tried_again():
    at = state(record("fused", "RESTORED", "slower: 0.9x"))
    assert ("fused", "restored") in standings(at)


def test_what_showed_nothing_is_tried_again_a_few_times():
    nothing = record("fused", "INCONCLUSIVE", "neither is shown")
    assert ("fused", "due") in standings(state(nothing))
    assert "again, since neither is shown" in next_action.choose_action(state(nothing)).why
    assert ("fused", "restored") in standings(state(*[nothing] * next_action.MOST_TRIES))


def test_save_where_something_that_it_builds_on_was_kept_since():
    tried = record("graphs", "RESTORED")
    again = state(tried, record("fused", "KEPT"))
    assert ("graphs", "due") in standings(again)
    assert "again, since no gain" in next_action.choose_action(again).why
    before = state(record("fused", "KEPT"), tried)
    assert ("graphs", "restored") in standings(before)
    wrong = state(record("graphs", "RESTORED", "wrong numerics", right=False), record("fused", "KEPT"))
    assert ("graphs", "restored") in standings(wrong)


def test_what_cannot_be_applied_is_passed_over_and_holds_nothing_up():
    lacking = recommendation("fused", 0.6).model_copy(update={"lacks": "it requires that the step runs on a GPU"})
    at = state(analysis=analysis(lacking, recommendation("graphs", 0.5)))
    assert standings(at) == [("graphs", "due"), ("fused", "excluded")]
    assert next_action.choose_action(at).candidates[-1].why == lacking.lacks
    alone = analysis(lacking)
    assert next_action.choose_action(state(analysis=alone)).action == "finished"
    assert standings(state(record("fused", "KEPT"), analysis=alone)) == [("fused", "kept")]


def test_what_cannot_be_applied_any_more_is_not_tried_again():
    lacking = recommendation("graphs", 0.5).model_copy(update={"lacks": "a step launches graphs already"})
    again = state(record("graphs", "RESTORED"), record("fused", "KEPT"), analysis=analysis(lacking))
    assert standings(again) == [("graphs", "excluded")]


def test_work_by_hand_comes_after_all_trials_and_low_impact_is_left():
    tried = (record("fused", "KEPT"), record("graphs", "RESTORED"))
    due = next_action.choose_action(state(*tried))
    assert (due.action, due.command) == ("work", "")
    assert "Do it." in due.why
    little = analysis(recommendation(None, 0.01))
    assert next_action.choose_action(state(*tried, analysis=little)).action == "finished"


def test_an_entry_that_nobody_knows_is_work_by_hand():
    assert standings(state(analysis=analysis(recommendation("strange", 0.3)))) == [("strange", "by hand")]


def test_where_nothing_is_on_disk_it_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "warpsmith.toml").write_text("")
    with pytest.raises(MissingInput, match="program analyze"):
        next_action.read_program_state(projects.find_project(tmp_path))


def test_a_program_in_a_folder_is_found_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    kept = tmp_path / "devlog" / "programs" / "src.train.train_step" / "analyses"
    kept.mkdir(parents=True)
    (kept / "001.json").write_text("{}")
    (tmp_path / "warpsmith.toml").write_text("")
    monkeypatch.setattr(next_action.analysis_store, "read_analysis", lambda path: analysis())
    monkeypatch.chdir(tmp_path)
    for text in ("src/train.py", "src/train.py:train_step", "train", "src.train.train_step"):
        assert next_action.read_program_state(projects.find_project(tmp_path), text).analysis is not None


def test_a_program_that_is_nowhere_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "warpsmith.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingInput, match=r"no analysis of src/gone\.py"):
        next_action.read_program_state(projects.find_project(tmp_path), "src/gone.py")
    Path("new.py").touch()
    due = next_action.choose_action(next_action.read_program_state(projects.find_project(tmp_path), "new.py"))
    assert due.command == "warpsmith program analyze new.py --step STEP"
