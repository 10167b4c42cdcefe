"""The loop: it follows `next`, refuses a designer that does not deliver, and goes on after any interruption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from warpsmith.campaign import start
from warpsmith.campaign.rounds import due_phase, open_round, state
from warpsmith.driver.optimize import MOST_INVALID, LoopProgress, run_loop
from warpsmith.driver.proposal import LessonProposal
from warpsmith.errors import AgentStopped, MachineFailed, Misuse


@pytest.fixture
def three(project: Any, make: Any) -> Any:
    """A campaign of at most three rounds."""
    return start.start_campaign(project, make.OP, "cpu", "toy", max_iterations=3)


def test_it_runs_until_the_rounds_are_used_up(three: Any, designer: Any, lab: Any):
    end = run_loop(three, designer)
    assert [record.solution for record in end.records] == ["toy/v1", "toy/v2", "toy/v3"]
    assert end.best_name == "toy/v3"
    assert end.stop is not None
    assert due_phase.find_due_phase(end).phase == "REPORT"
    assert not three.open.exists()
    assert designer.asked == [
        "design:1", "lesson:1",
        "selection:2", "plan:2", "design:2", "lesson:2",
        "selection:3", "plan:3", "design:3", "lesson:3",
    ]  # fmt: skip
    assert lab.judged == ["v1", "v2", "v3"]
    assert [name for name in lab.profiled if name.startswith("profile ")] == []  # each round left one


def test_it_stops_at_the_performance_target(three: Any, designer: Any, lab: Any):
    lab.shares = {"v2": 0.93}
    assert len(run_loop(three, designer).records) == 2


def test_it_stops_between_rounds_where_the_designer_is_done(campaign: Any, designer: Any, lab: Any):
    designer.rounds = 2
    end = run_loop(campaign, designer)
    assert (len(end.records), end.stop, end.open.last()) == (2, None, None)


def test_a_finished_designer_still_closes_the_open_round(campaign: Any, designer: Any, lab: Any):
    designer.breaks_at = "lesson:2"
    with pytest.raises(KeyboardInterrupt):
        run_loop(campaign, designer)
    designer.breaks_at, designer.rounds = "", 1
    assert len(run_loop(campaign, designer).records) == 2


def test_a_rollback_keeps_the_best_version(three: Any, designer: Any, lab: Any):
    lab.verdicts = {"v2": "ROLLBACK"}
    end = run_loop(three, designer)
    assert [record.parent for record in end.records] == [None, "toy/v1", "toy/v1"]
    assert [record.outcome.best for record in end.records] == ["toy/v1", "toy/v1", "toy/v3"]


def test_it_tells_each_step_and_its_result(three: Any, designer: Any, lab: Any):
    begun: list[str] = []
    ended: list[str] = []
    run_loop(
        three, designer, LoopProgress(lambda s: begun.append(s.phase), end=lambda s, text: ended.append(text))
    )
    assert begun[:2] == ["DESIGN", "VERIFY"]
    assert len(begun) == len(ended)
    assert "kernels/scale/toy/v1.toy" in ended
    assert "Hypothesis of round 2. Predicted +20%." in ended
    assert "memory: It waits for memory." in ended
    assert "ACCEPT: as the numbers say" in ended


def test_a_designer_that_leaves_no_file_is_refused(campaign: Any, designer: Any, lab: Any):
    designer.write = lambda path: None
    with pytest.raises(Misuse, match=r"left no new version at .*scale/toy/v1\.toy"):
        run_loop(campaign, designer)
    assert (campaign.records(), lab.judged) == ([], [])


def test_a_designer_that_repeats_a_version_is_refused(campaign: Any, designer: Any, lab: Any):
    designer.write = lambda path: path.write_text("multiply\n")
    with pytest.raises(Misuse, match=r"left no new version at .*v2\.toy"):
        run_loop(campaign, designer)
    assert len(campaign.records()) == 1
    assert lab.judged == ["v1"]


def test_a_plan_that_the_campaign_refuses_ends_the_run(campaign: Any, designer: Any, lab: Any, make: Any):
    designer.plan = lambda now, step, refused: make.plan("baseline")
    with pytest.raises(Misuse, match="category `baseline`"):
        run_loop(campaign, designer)
    assert state.read_state(campaign).open.last() == "selection"


def test_a_lesson_that_the_gate_refuses_leaves_the_round_open(campaign: Any, designer: Any, lab: Any):
    designer.proposal = LessonProposal(action="nothing", text="no")
    with pytest.raises(Misuse, match="Give a reason of at least ten characters"):
        run_loop(campaign, designer)
    now = state.read_state(campaign)
    assert (now.records, now.open.last()) == ([], "outcome")


def test_a_machine_that_keeps_failing_ends_the_run(campaign: Any, designer: Any, lab: Any):
    lab.verdicts = {"v1": "INVALID"}
    with pytest.raises(MachineFailed, match="failed 3 judgements, most recently: as the numbers say"):
        run_loop(campaign, designer)
    assert MOST_INVALID == 3
    assert lab.judged == ["v1"] * 3
    assert campaign.records() == []
    assert len(state.read_state(campaign).open.invalid) == 3


def test_a_machine_that_failed_twice_goes_on(three: Any, designer: Any, lab: Any):
    verify = lab.verify

    def recovers(*arguments: Any) -> Any:
        lab.verdicts["v1"] = "INVALID" if len(lab.judged) < 2 else "ACCEPT"
        return verify(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warpsmith.campaign.lab_requests.judge_due_version", recovers)
        end = run_loop(three, designer)
    assert lab.judged == ["v1", "v1", "v1", "v2", "v3"]
    assert end.records[0].outcome.verdict.accepted
    assert len(list((three.rounds / "001").glob("invalid-*.json"))) == 2


@pytest.mark.parametrize("where", ["design:1", "lesson:1", "selection:2", "plan:2", "design:2", "lesson:2"])
def test_an_interrupted_run_goes_on_where_it_was(three: Any, designer: Any, lab: Any, where: str):
    designer.breaks_at = where
    with pytest.raises(KeyboardInterrupt):
        run_loop(three, designer)
    designer.breaks_at = ""
    end = run_loop(three, designer)
    assert [record.solution for record in end.records] == ["toy/v1", "toy/v2", "toy/v3"]
    assert designer.asked.count(where) == 2
    assert [asked for asked in designer.asked if designer.asked.count(asked) > 1] == [where] * 2
    assert lab.judged == ["v1", "v2", "v3"]


def test_a_run_that_died_while_filing_finishes_the_round(
    three: Any, designer: Any, lab: Any, monkeypatch: pytest.MonkeyPatch
):
    def dies(campaign: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(open_round, "file_round", dies)
        with pytest.raises(KeyboardInterrupt):
            run_loop(three, designer)
    assert three.records() == []
    (three.open / ".tmp-plan.json-1-aa").write_text("half a pl")
    end = run_loop(three, designer)
    assert len(end.records) == 3
    assert designer.asked.count("lesson:1") == 1


def test_a_run_that_is_over_stays_over(three: Any, designer: Any, lab: Any):
    first = run_loop(three, designer)
    before = {path: path.read_bytes() for path in Path(three.rounds).rglob("*.json")}
    asked = list(designer.asked)
    assert run_loop(three, designer).records == first.records
    assert designer.asked == asked
    assert {path: path.read_bytes() for path in Path(three.rounds).rglob("*.json")} == before


def test_the_run_holds_the_lock_and_lets_go(three: Any, designer: Any, lab: Any):
    held: list[bool] = []
    plain = designer.write
    designer.write = lambda path: (held.append((three.folder / ".holder.json").exists()), plain(path))
    run_loop(three, designer)
    assert held == [True] * 3
    assert not (three.folder / ".holder.json").exists()


def test_a_refused_proposal_is_sent_back_with_the_sentence(three: Any, designer: Any, lab: Any, make: Any):
    designer.tries = 2
    plans, plain = [make.plan("baseline")], designer.plan

    def plan(now: Any, step: Any, refused: str) -> Any:
        return plans.pop() if plans else plain(now, step, refused)

    designer.plan = plan
    assert len(run_loop(three, designer).records) == 3
    (refusal,) = filter(None, designer.refusals)
    assert refusal.startswith("The category `baseline` is only for the first version")


def test_a_designer_that_is_refused_again_has_ended(three: Any, designer: Any, lab: Any):
    designer.tries = 2
    designer.proposal = LessonProposal(action="nothing", text="no")
    with pytest.raises(AgentStopped, match=r"LEARN: the lab refused 2 proposals, .*: Give a reason"):
        run_loop(three, designer)
    assert designer.asked == ["design:1", "lesson:1", "lesson:1"]
    assert state.read_state(three).open.last() == "outcome"


def test_a_plan_on_an_entry_that_is_not_there_is_refused(campaign: Any, designer: Any, lab: Any, make: Any):
    designer.plan = lambda now, step, refused: make.plan("memory", entries=["no-such-entry"])
    with pytest.raises(Misuse, match="no-such-entry"):
        run_loop(campaign, designer)
    assert state.read_state(campaign).open.last() == "selection"


def test_a_version_that_does_not_build_is_designed_again(campaign, designer, lab) -> None:
    designer.fixes, designer.rounds = True, 1
    texts = iter(["a typo", "another typo", "multiply"])
    designer.write = lambda path: path.write_text(next(texts))
    lines: list[str] = []
    end = run_loop(campaign, designer, LoopProgress(end=lambda step, result: lines.append(result)))
    assert designer.asked == ["design:1"] * 3 + ["lesson:1"]
    assert lab.judged == ["v1"] * 3
    assert [(record.solution, record.attempts) for record in end.records] == [("toy/v1", 3)]
    assert any(line.startswith("Attempt 2 of 5 did not build") for line in lines)


def test_a_designer_that_cannot_fix_it_spends_the_round(campaign, designer, lab) -> None:
    designer.rounds = 1
    designer.write = lambda path: path.write_text("a typo")
    end = run_loop(campaign, designer)
    assert designer.asked == ["design:1"] * 2 + ["lesson:1"]
    assert lab.judged == ["v1"]
    assert [(record.verdict, record.attempts) for record in end.records] == [("ROLLBACK", 1)]


def test_a_designer_that_never_builds_ends_the_round(campaign, designer, lab) -> None:
    designer.fixes, designer.rounds = True, 1
    texts = iter([f"typo {k}" for k in range(9)])
    designer.write = lambda path: path.write_text(next(texts))
    end = run_loop(campaign, designer)
    assert [(record.verdict, record.attempts) for record in end.records] == [("ROLLBACK", 6)]
