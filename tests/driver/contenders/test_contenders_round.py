"""A round with several contenders: one is judged, all are recorded, and no interruption costs anything twice."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import contender_kit
import pytest

from warpsmith import files
from warpsmith.campaign import tries
from warpsmith.campaign.rounds import due_phase, open_round, state, strike
from warpsmith.core.campaign import RoundRecord
from warpsmith.driver import brief
from warpsmith.driver.contenders import fork
from warpsmith.driver.optimize import LoopProgress, run_loop
from warpsmith.errors import AgentStopped, Misuse


@pytest.fixture
def bench(lab: Any, monkeypatch: pytest.MonkeyPatch) -> contender_kit.Bench:
    return contender_kit.install(monkeypatch)


@pytest.fixture
def planner(bench: contender_kit.Bench) -> contender_kit.Planner:
    return contender_kit.Planner(bench)


def play(campaign: Any, planner: Any, contenders: int = 3) -> state.CampaignState:
    """Run until the planner is finished, after two rounds."""
    progress = LoopProgress(end=lambda step, text: planner.bench.lines.append(text))
    return run_loop(campaign, planner, progress, contenders)


def test_the_fastest_is_judged_and_all_are_recorded(campaign: Any, lab: Any, planner: Any):
    end = play(campaign, planner)
    record = end.records[1]
    assert lab.judged == ["v1", "v2"]
    assert (end.rounds[1].folder / record.snapshot).read_text() == "multiply by 20\n"
    assert [each.end for each in record.contenders] == ["screened", "chosen", "screened"]
    assert [each.screen.speedup for each in record.contenders if each.screen] == [1.1, 1.3, 1.2]
    assert record.plan == record.contenders[1].plan
    for each in record.contenders:
        copy = end.rounds[1].folder / (each.copy_name or "")
        assert copy.read_text() == f"multiply by {each.number}0\n"
        assert files.file_sha256(copy) == each.sha256
        check = json.loads((end.rounds[1].folder / f"contender-{each.number}.json").read_text())
        assert check["provenance"]["solution_sha256"] == each.sha256
    assert not fork.forks_folder(campaign).exists()


def test_the_baseline_is_designed_alone_and_its_record_is_as_before(campaign: Any, lab: Any, planner: Any):
    first = play(campaign, planner).rounds[0]
    assert first.record.contenders == ()
    assert "contenders" not in json.loads(first.path.read_text())
    assert RoundRecord.model_validate_json(first.path.read_bytes()) == first.record


def test_each_planner_sees_the_plans_before_its_own(campaign: Any, lab: Any, planner: Any):
    play(campaign, planner)
    first, second, third = planner.notes
    assert not any("Contender" in note for note in first)
    assert [note.split(" (")[0] for note in third if note.startswith("Contender")] == [
        f"Contender {number} of this round tries, at the same time: Way {number} of round 2 is the faster way"
        for number in (1, 2)
    ]
    assert len(second) == len(first) + 2


def test_an_equal_prediction_is_sent_back(campaign: Any, lab: Any, planner: Any, bench: Any):
    bench.changes[2] = bench.changes[1]
    record = play(campaign, planner).records[1]
    assert planner.refusals[:2] == ["", ""]
    assert "predicted change is that of contender 1" in planner.refusals[2]
    assert [each.plan.expected_change for each in record.contenders] == [5.0, 105.0, 15.0]


def test_an_answer_that_is_no_plan_is_sent_back(campaign: Any, lab: Any, planner: Any, bench: Any):
    plan_beside = planner.plan_beside

    def fail_first(state: Any, step: Any, others: Any, refused: str = "") -> Any:
        if others and not refused:
            raise Misuse("The answer does not validate.")
        return plan_beside(state, step, others, refused)

    planner.plan_beside = fail_first
    assert len(play(campaign, planner).records[1].contenders) == 3
    assert planner.refusals.count("The answer does not validate.") == 2


def test_a_planner_that_repeats_itself_leaves_fewer_contenders(
    campaign: Any, lab: Any, planner: Any, bench: Any, make: Any
):
    def repeat(state: Any, step: Any, others: Any, refused: str = "") -> Any:
        return make.plan("memory", hypothesis="The same again and again.")

    planner.plan_beside = repeat
    bench.texts = dict.fromkeys(range(9), "multiply by 20\n")
    planner.design = lambda state, step, path, refused="": (
        path.parent.mkdir(parents=True, exist_ok=True),
        path.write_text("multiply\n" if state.baseline else "multiply by 20\n"),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contender_kit, "create_planner", lambda *_, budget: planner)
        record = play(campaign, planner).records[1]
    assert [each.end for each in record.contenders] == ["chosen"]
    assert any("1 contenders instead of 3" in line for line in bench.lines)


def test_an_equal_source_is_refused(campaign: Any, lab: Any, planner: Any, bench: Any):
    bench.texts[3] = "multiply  by 20\n"
    record = play(campaign, planner).records[1]
    assert [each.end for each in record.contenders] == ["screened", "chosen", "refused"]
    assert "contender 2" in record.contenders[2].reason
    assert bench.screened == [[1, 2]]


def test_a_wrong_version_is_not_chosen(campaign: Any, lab: Any, planner: Any, bench: Any):
    bench.texts[2] = "wrong, and multiply by 20\n"
    record = play(campaign, planner).records[1]
    assert [each.end for each in record.contenders] == ["screened", "failed", "chosen"]
    assert record.contenders[1].screen is None


def test_where_none_is_right_the_first_gets_its_verdict(campaign: Any, lab: Any, planner: Any, bench: Any):
    bench.texts = {number: f"wrong {number}\n" for number in range(9)}
    lab.verdicts = {"v2": "ROLLBACK"}
    record = play(campaign, planner).records[1]
    assert [each.end for each in record.contenders] == ["chosen", "failed", "failed"]
    assert bench.screened == []
    assert record.verdict == "ROLLBACK"


def test_the_fastest_of_two_devices_are_raced_on_one(campaign: Any, lab: Any, planner: Any, bench: Any):
    bench.devices, bench.margin = 2, 0.06
    record = play(campaign, planner).records[1]
    assert bench.screened == [[1, 3], [2], [2, 3]]
    assert [each.end for each in record.contenders] == ["screened", "chosen", "raced"]


def test_the_devices_of_a_context_share_the_contenders_out(campaign: Any, lab: Any, planner: Any, bench: Any):
    """Its checks say how many there are; this machine's do not count."""
    bench.devices, bench.devices_there, bench.margin = 1, 2, 0.06
    manifest = campaign.manifest.model_copy(update={"context": "lab"})
    record = play(replace(campaign, manifest=manifest), planner).records[1]
    assert bench.screened == [[1, 3], [2], [2, 3]]
    assert [each.end for each in record.contenders] == ["screened", "chosen", "raced"]


def test_the_costs_of_all_designers_count_once(campaign: Any, lab: Any, planner: Any, bench: Any):
    record = play(campaign, planner).records[1]
    assert sorted(spend.turns for spend in record.spent) == [1, 2, 3]
    assert bench.charged == [0.25] * 3


def break_at_the_version(patch: pytest.MonkeyPatch, bench: Any) -> None:
    """Interrupt, if the bench says so, before the chosen version is written to its place."""
    take = open_round.take_contender

    def take_contender(current: Any) -> bool:
        if bench.breaks_at == "taken" and current.open.contenders:
            bench.reach("taken")
        return take(current)

    patch.setattr(open_round, "take_contender", take_contender)


def test_the_variants_that_designers_tried_count(campaign: Any, lab: Any, planner: Any, bench: Any):
    design = contender_kit.Planner.design

    def try_and_design(own: Any, state: Any, step: Any, path: Any, refused: str = "") -> None:
        design(own, state, step, path, refused)
        if state.open.plan:
            tries.log_configs(state.campaign.project, "scale", "cpu", [{"TILE": 1}, {"TILE": 2}])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contender_kit.Planner, "design", try_and_design)
        record = play(campaign, planner).records[1]
    assert record.tried == 6


def test_a_planner_without_any_plan_ends_the_run(campaign: Any, lab: Any, planner: Any, bench: Any):
    planner.count = 0
    with pytest.raises(AgentStopped, match="has no plan left"):
        play(campaign, planner)


PLACES = (
    *("plan 2", "design 1", "design 3", "check multiply by 20", "screen"),
    *("contenders.json", "plan.json", "taken"),
)


@pytest.mark.parametrize("place", PLACES)
def test_an_interrupted_round_goes_on(
    campaign: Any, lab: Any, planner: Any, bench: Any, place: str, monkeypatch: pytest.MonkeyPatch
):
    bench.breaks_at = place
    write = type(campaign).write_part

    def write_part(own: Any, name: str, part: Any) -> Any:
        if f"{name}.json" == bench.breaks_at and own.folder == campaign.folder:
            bench.reach(bench.breaks_at)
        return write(own, name, part)

    monkeypatch.setattr(type(campaign), "write_part", write_part)
    break_at_the_version(monkeypatch, bench)
    with pytest.raises(KeyboardInterrupt):
        play(campaign, planner)
    bench.breaks_at = ""
    end = play(campaign, planner)
    assert lab.judged == ["v1", "v2"]
    assert [each.end for each in end.records[1].contenders] == ["screened", "chosen", "screened"]
    repeated = {action for action in bench.asked if bench.asked.count(action) > 1}
    once = {"contenders.json": {"screen"}, "plan.json": set(), "taken": set()}
    assert repeated == once.get(place, {place})
    again = [int(place.split()[1])] if place.startswith("design") else []
    assert sorted(spend.turns for spend in end.records[1].spent) == sorted([1, 2, 3, *again])


def test_a_plan_by_hand_does_not_replace_the_chosen_one(
    campaign: Any, lab: Any, planner: Any, bench: Any, make: Any, monkeypatch: pytest.MonkeyPatch
):
    break_at_the_version(monkeypatch, bench)
    bench.breaks_at = "taken"
    with pytest.raises(KeyboardInterrupt):
        play(campaign, planner)
    assert due_phase.find_due_phase(state.read_state(campaign)).step == "design"
    with pytest.raises(Misuse, match="Contender 2 of this round was chosen"):
        open_round.record_plan(campaign, make.plan())


def test_without_any_version_the_reason_is_told(campaign: Any, lab: Any, planner: Any, bench: Any):
    def fail(state: Any, step: Any, path: Any, refused: str = "") -> None:
        if not state.baseline:
            raise AgentStopped("the API is down")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("multiply\n")

    planner.design = fail
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contender_kit, "create_planner", lambda *_, budget: planner)
        with pytest.raises(AgentStopped):
            play(campaign, planner)
    assert lab.judged == ["v1"]


def test_a_strike_of_the_best_version_drops_the_contenders_against_it(
    campaign: Any, lab: Any, planner: Any, bench: Any, monkeypatch: pytest.MonkeyPatch
):
    break_at_the_version(monkeypatch, bench)
    bench.breaks_at = "taken"
    with pytest.raises(KeyboardInterrupt):
        play(campaign, planner)
    strike.strike_round(campaign, 1, "It keeps results of earlier calls.")
    assert state.read_state(campaign).open.contenders is None


def test_the_next_brief_names_those_that_lost(
    campaign: Any, lab: Any, planner: Any, monkeypatch: pytest.MonkeyPatch
):
    lines = list(brief._failed_rounds(play(campaign, planner)))
    assert [line.split(": ")[0] for line in lines] == ["Lost to toy/v2 in round 2, not judged"] * 2
