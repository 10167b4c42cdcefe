"""`next` over a whole campaign: every step in order, with commands and places that are right."""

from __future__ import annotations

from pathlib import Path

import pytest
from campaign_kit import NOTHING, OP, Script, evaluation, plan, profile, review

from warpsmith.campaign import start
from warpsmith.campaign.history import store
from warpsmith.campaign.rounds import due_phase, open_round, state
from warpsmith.core.campaign import Selection
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.profile import Profile
from warpsmith.errors import Misuse
from warpsmith.project import Project

BASELINE = ["design", "verdict", "profile_after", "outcome", "lesson"]
ROUND = ["profile", "selection", "plan", *BASELINE]


def due(campaign: store.Campaign) -> due_phase.DuePhase:
    return due_phase.find_due_phase(state.read_state(campaign))


def test_a_whole_campaign(project: Project) -> None:
    campaign = start.start_campaign(project, OP, "cpu", "toy", max_iterations=3)
    script = Script({"v1": "ACCEPT", "v2": "ROLLBACK", "v3": "INVALID"})
    seen: list[tuple[int, str]] = []
    while (step := due(campaign)).phase != "REPORT":
        seen.append((step.round, step.step))
        assert step.command == "" or step.command.endswith(f"--campaign {campaign.name}")
        script.do(campaign, step)
        if step.step != "verdict" or campaign.read_part("verdict", Evaluation):
            assert (project.root / step.produces.split(",")[0]).exists(), step
    # Round 1 left a profile of the best version behind; round 2 was rolled back.
    expected = [(1, name) for name in BASELINE] + [(2, name) for name in ROUND if name != "profile"]
    third = [*ROUND[:5], "verdict", *ROUND[5:]]  # the INVALID attempt is judged again
    assert seen == expected + [(3, name) for name in third]
    assert step.round == 3
    assert "3 rounds are closed" in step.needs
    assert [record.outcome.best for record in campaign.records()] == ["toy/v1", "toy/v1", "toy/v3"]
    assert [record.parent for record in campaign.records()] == [None, "toy/v1", "toy/v1"]
    assert [record.profile is None for record in campaign.records()] == [True, False, False]
    assert (campaign.rounds / "003" / "invalid-1.json").exists()
    assert not campaign.open.exists()


def test_texts_name_the_files(campaign: store.Campaign) -> None:
    script = Script({"v1": "ACCEPT"})
    assert due(campaign).produces == "kernels/scale/toy/v1.toy"
    script.until(campaign, "verdict")
    assert due(campaign).command == f"warpsmith judge kernels/scale/toy/v1.toy --campaign {campaign.name}"
    script.until(campaign, "profile_after")
    assert due(campaign).command == f"warpsmith profile kernels/scale/toy/v1.toy --campaign {campaign.name}"
    assert (due(campaign).who, due(campaign).agent) == ("profiler", "warpsmith:profiler")


def test_the_agent_of_design_has_its_full_name(campaign: store.Campaign) -> None:
    assert due(campaign).agent == "warpsmith:toy-specialist"
    judge = f"`warpsmith judge kernels/scale/toy/v1.toy --campaign {campaign.name}`"
    assert any(judge in note for note in due(campaign).notes)


def test_a_profile_that_was_just_made_is_not_made_again(campaign: store.Campaign) -> None:
    script = Script({"v1": "ACCEPT", "v2": "ROLLBACK"})
    script.round(campaign)
    (note,) = [note for note in due(campaign).notes if "prints it again" in note]
    assert f"`warpsmith profile kernels/scale/toy/v1.toy --campaign {campaign.name}`" in note
    assert open_round.version_to_profile(campaign)[0] == "profile"
    script.until(campaign, "plan")
    kept = campaign.records()[0].profile_after
    assert campaign.read_part("profile", Profile) == kept
    script.round(campaign)
    assert due(campaign).step == "profile"  # the last round profiled a version that is not the best


def test_next_changes_nothing(campaign: store.Campaign) -> None:
    before = sorted(campaign.folder.rglob("*"))
    due(campaign)
    assert sorted(campaign.folder.rglob("*")) == before


def test_failed_baseline_is_tried_again(campaign: store.Campaign) -> None:
    script = Script({"v1": "ROLLBACK", "v2": "ACCEPT"})
    script.round(campaign)
    step = due(campaign)
    assert (step.round, step.step, step.produces) == (2, "design", "kernels/scale/toy/v2.toy")
    script.round(campaign)
    assert [record.plan.category for record in campaign.records()] == ["baseline", "baseline"]
    assert due(campaign).step == "selection"


def test_version_that_is_wrong_needs_no_profile(campaign: store.Campaign) -> None:
    Script({}).until(campaign, "verdict")
    path = open_round.version_to_judge(campaign).path
    wrong = {"workload": "small", "status": "RUNTIME_ERROR", "message": "it fell over"}
    open_round.record_verdict(campaign, evaluation(path, "ROLLBACK", None, results=[wrong]))
    assert due(campaign).step == "outcome"


def test_baseline_points_to_earlier_tips(campaign: store.Campaign) -> None:
    page = campaign.project.knowledge / "experience" / "cpu" / OP / "toy.md"
    assert not any("lessons" in note for note in due(campaign).notes)
    page.parent.mkdir(parents=True)
    page.write_text("# Tips\n")
    assert any("`warpsmith brief --lessons`" in note for note in due(campaign).notes)


def test_a_plan_is_told_that_energy_decides(project: Project) -> None:
    campaign = start.start_campaign(project, OP, "cpu", "toy", objective="energy")
    assert any(note.startswith("Energy per call decides") for note in due(campaign).notes)
    script = Script({"v1": "ACCEPT"})
    script.until(campaign, "selection")
    assert not any("Joules" in note for note in due(campaign).notes)
    script.until(campaign, "plan")
    assert any(note.startswith("Energy per call decides") for note in due(campaign).notes)


def test_invalid_attempt_is_said(campaign: store.Campaign) -> None:
    script = Script({"v1": "INVALID"})
    script.until(campaign, "verdict")
    script.do(campaign, due(campaign))
    step = due(campaign)
    assert step.step == "verdict"
    assert "1 attempts were INVALID" in step.notes[0]


def test_duplicate_of_a_rejected_version_keeps_design_due(campaign: store.Campaign) -> None:
    script = Script({"v1": "ACCEPT", "v2": "ROLLBACK", "v3": "ACCEPT"})
    script.round(campaign)
    script.round(campaign)
    script.until(campaign, "design")
    path = campaign.project.kernels / OP / "toy" / "v3.toy"
    path.write_text("multiply   by\n 2")
    step = due(campaign)
    assert step.step == "design"
    assert any("from toy/v2, rolled back in round 2" in note for note in step.notes)
    with pytest.raises(Misuse, match=r"is no new version: .* toy/v2, rolled back in round 2"):
        open_round.version_to_judge(campaign)
    path.write_text("multiply by 1")
    with pytest.raises(Misuse, match="toy/v1, the best version in round 1"):
        open_round.version_to_judge(campaign)
    path.write_text("multiply by 3")
    assert due(campaign).step == "verdict"


def test_steps_out_of_order_are_refused(campaign: store.Campaign) -> None:
    script = Script({"v1": "ACCEPT"})
    with pytest.raises(Misuse, match=r"DESIGN of round 1: .*kernels/scale/toy/v1\.toy"):
        open_round.record_plan(campaign, plan())
    with pytest.raises(Misuse, match="DESIGN"):
        open_round.close_round(campaign, NOTHING)
    script.until(campaign, "outcome")
    path = campaign.project.kernels / OP / "toy" / "v1.toy"
    with pytest.raises(Misuse, match="at EVALUATE of round 1"):
        open_round.record_verdict(campaign, evaluation(path, "ROLLBACK", None))
    before = sorted(campaign.open.iterdir())
    with pytest.raises(Misuse, match="warpsmith evaluate"):
        open_round.record_selection(campaign, Selection(language="toy", because="It is simple."))
    assert sorted(campaign.open.iterdir()) == before


def test_plan_may_be_revised_until_it_is_judged(campaign: store.Campaign) -> None:
    script = Script({"v1": "ACCEPT", "v2": "ROLLBACK"})
    script.round(campaign)
    script.until(campaign, "verdict")
    open_round.record_plan(campaign, plan("fusion"))
    revised = state.read_state(campaign).open.plan
    assert revised is not None
    assert revised.category == "fusion"
    script.until(campaign, "outcome")
    with pytest.raises(Misuse, match="at EVALUATE"):
        open_round.record_plan(campaign, plan("memory"))


@pytest.mark.parametrize(
    "changes",
    [{"target": "h200"}, {"version": "v9"}, {"language": "other"}, {"definition": "softmax"}],
    ids=lambda changes: next(iter(changes)),
)
def test_verdict_of_something_else_is_refused(campaign: store.Campaign, changes: dict[str, str]) -> None:
    Script({}).until(campaign, "verdict")
    with pytest.raises(Misuse, match="The verdict is of"):
        open_round.record_verdict(
            campaign, evaluation(open_round.version_to_judge(campaign).path, "ACCEPT", None, **changes)
        )
    assert not campaign.open.exists()


def test_verdict_on_a_file_that_changed_is_refused(campaign: store.Campaign) -> None:
    Script({}).until(campaign, "verdict")
    path = open_round.version_to_judge(campaign).path
    judged = evaluation(path, "ACCEPT", None)
    path.write_text("something else\n")
    with pytest.raises(Misuse, match="changed while it was judged"):
        open_round.record_verdict(campaign, judged)


def test_a_judged_version_that_was_edited_since_is_named(campaign: store.Campaign) -> None:
    script = Script({"v1": "ACCEPT"})
    path = campaign.project.kernels / OP / "toy" / "v1.toy"
    script.until(campaign, "lesson")
    judged = path.read_bytes()
    assert not due(campaign).notes
    path.write_text("improved by hand\n")
    change = "kernels/scale/toy/v1.toy was edited since it was judged; put devlog/scale/"
    assert due(campaign).notes == (f"{change}{campaign.name}/rounds/open/toy-v1.toy back.",)
    assert (campaign.open / "toy-v1.toy").is_file()
    path.write_bytes(judged)
    script.lesson(campaign, state.read_state(campaign))
    path.write_text("improved by hand\n")
    assert f"{change}{campaign.name}/rounds/001/toy-v1.toy back." in due(campaign).notes
    assert (campaign.rounds / "001" / "toy-v1.toy").is_file()
    path.unlink()
    assert any("v1.toy is gone since" in note for note in due(campaign).notes)


def test_closing_over_an_edited_version_is_refused(campaign: store.Campaign) -> None:
    script = Script({"v1": "ACCEPT"})
    script.until(campaign, "lesson")
    path = campaign.project.kernels / OP / "toy" / "v1.toy"
    path.write_text("improved by hand\n")
    with pytest.raises(Misuse, match=r"put .*rounds/open/toy-v1\.toy back"):
        script.lesson(campaign, state.read_state(campaign))
    path.write_bytes((campaign.open / "toy-v1.toy").read_bytes())
    script.lesson(campaign, state.read_state(campaign))
    assert len(campaign.records()) == 1


def test_changed_definition_is_refused(campaign: store.Campaign) -> None:
    script = Script({"v1": "ACCEPT"})
    script.round(campaign)
    script.until(campaign, "verdict")
    path = open_round.version_to_judge(campaign).path
    judged = evaluation(path, "ACCEPT")
    other = judged.provenance.model_copy(update={"definition_sha256": "9" * 64})
    with pytest.raises(Misuse, match="definition of scale has changed"):
        open_round.record_verdict(campaign, judged.model_copy(update={"provenance": other}))


def test_profile_of_another_file_is_refused(campaign: store.Campaign, tmp_path: Path) -> None:
    script = Script({"v1": "ACCEPT"})
    script.round(campaign)
    path = tmp_path / "toy" / "v1.toy"
    path.parent.mkdir()
    path.write_text("another\n")
    with pytest.raises(Misuse, match="as it was judged"):
        open_round.record_profile(campaign, profile(path))


def test_stagnation_is_said_and_enforced(project: Project) -> None:
    campaign = start.start_campaign(project, OP, "cpu", "toy")
    script = Script({f"v{n}": "ROLLBACK" for n in range(2, 9)} | {"v1": "ACCEPT"})
    for _ in range(4):
        script.round(campaign)
    script.until(campaign, "plan")
    notes = due(campaign).notes
    assert any("3 rollbacks in a row" in note for note in notes)
    assert any("a language other than toy" in note for note in notes)
    with pytest.raises(Misuse, match="names 0"):
        open_round.record_plan(campaign, plan("memory"))
    with pytest.raises(Misuse, match="plan another category"):
        open_round.record_plan(campaign, plan("compute", review=review("compute", "memory")))
    open_round.record_plan(campaign, plan("memory", review=review()))
    assert due(campaign).step == "design"


@pytest.mark.parametrize(("after", "asks"), [(41.0, True), (50.0, False)])
def test_a_gain_for_a_reason_unknown_asks_for_a_comparison(
    campaign: store.Campaign, after: float, asks: bool
) -> None:
    class Unmoved(Script):
        def profile_after(self, campaign: store.Campaign, now: state.CampaignState) -> None:
            path = open_round.version_to_profile(campaign)[1].path
            open_round.record_profile(campaign, profile(path, dram_pct=after if path.stem == "v2" else 40))

    script = Unmoved({"v1": "ACCEPT", "v2": "ACCEPT"})
    script.round(campaign)
    script.round(campaign)
    script.until(campaign, "selection")
    notes = " ".join(due_phase.find_due_phase(state.read_state(campaign)).notes)
    assert ("--diff toy/v1 toy/v2" in notes) is asks
    assert ("dram_pct moved by +1" in notes) is asks
