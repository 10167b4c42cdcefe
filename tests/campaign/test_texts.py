"""The rule for texts by agents at every door through which they come."""

from __future__ import annotations

import pytest
from campaign_kit import NOTHING, Script, plan

from warpsmith.campaign import texts
from warpsmith.campaign.history import store
from warpsmith.campaign.rounds import lessons, open_round, state
from warpsmith.campaign.rounds.lessons import PreparedLesson
from warpsmith.campaign.rounds.strike import strike_round
from warpsmith.core.campaign import Lesson, Selection, Tip
from warpsmith.errors import BadEntry

INVENTED = "The stores made it 9.7x faster on an H200, accepted."


def nothing(reason: str, tip: Tip | None = None) -> PreparedLesson:
    return PreparedLesson(lesson=Lesson(action="nothing", reason=reason, tip=tip))


@pytest.fixture
def rolled_back(campaign: store.Campaign) -> store.Campaign:
    """A campaign whose second round was rolled back and waits for its lesson."""
    script = Script({"v1": "ACCEPT", "v2": "ROLLBACK"})
    script.round(campaign)
    script.until(campaign, "lesson")
    return campaign


def test_an_invented_figure_in_a_lesson_is_named_and_nothing_changes(rolled_back: store.Campaign) -> None:
    with pytest.raises(BadEntry, match=r"`9\.7x`, which no record of this round supports"):
        open_round.close_round(rolled_back, nothing(INVENTED))
    assert state.read_state(rolled_back).open.lesson is None
    assert len(rolled_back.records()) == 1


def test_a_lesson_may_state_what_was_measured(rolled_back: store.Campaign) -> None:
    lesson = nothing("It was 20 % faster, 1.2x [1.0, 1.3], and dram_pct stood at 50 %.")
    assert open_round.close_round(rolled_back, lesson).record.round == 2


def test_a_lesson_may_not_contradict_the_verdict(rolled_back: store.Campaign) -> None:
    with pytest.raises(BadEntry, match="`accepted`, but the version was not accepted"):
        open_round.close_round(rolled_back, nothing("Wider stores, accepted."))


def test_a_tip_is_read_too(rolled_back: store.Campaign) -> None:
    tip = Tip(context="c", signal="dram_pct at 93 %", takeaway="t", applicability="a")
    with pytest.raises(BadEntry, match="The tip's signal states `93 %`"):
        open_round.close_round(rolled_back, nothing("It was known already.", tip))


@pytest.mark.parametrize("action", ["add", "refine"])
def test_a_note_and_an_entry_are_read_without_their_code(action: str) -> None:
    entry = {"action": action, "text": "```cpp\nx = 9.7x;\n```\nIt took 12 us."}
    prepared = PreparedLesson(lesson=Lesson(action="add", entry="e", reason="new"), entry=entry)
    read = lessons.prepared_texts(prepared)
    assert read["new entry" if action == "add" else "note"].strip() == "It took 12 us."
    assert read["lesson"] == "new"


def test_a_plan_states_figures_of_records_only(campaign: store.Campaign) -> None:
    script = Script({"v1": "ACCEPT"})
    script.round(campaign)
    script.until(campaign, "plan")
    for field in ("hypothesis", "risks", "rollback"):
        with pytest.raises(BadEntry, match=f"The {field} states `3 us`"):
            open_round.record_plan(campaign, plan(**{field: "It saves 3 us a call."}))
    with pytest.raises(BadEntry, match="The search log states `3x`"):
        open_round.record_plan(campaign, plan(search_log=["a page, 3x"]))
    open_round.record_plan(campaign, plan(hypothesis="DRAM is at 50 %, so 20 % are to be had."))


def test_the_expected_effects_of_a_review_are_estimates(campaign: store.Campaign) -> None:
    direction = {"name": "way", "category": "memory", "expected": "5 to 10 %"}
    assert "5 to 10 %" not in str(texts.plan_texts(plan(review=[direction])))


def test_a_reason_for_a_language_or_a_strike_is_read(campaign: store.Campaign) -> None:
    script = Script({"v1": "ACCEPT"})
    script.round(campaign)
    with pytest.raises(BadEntry, match="The reason for the strike states `4x`"):
        strike_round(campaign, 1, "It is 4x slower in use.")
    script.until(campaign, "selection")
    with pytest.raises(BadEntry, match="The reason for the language states `2x`"):
        open_round.record_selection(campaign, Selection(language="toy", because="It is 2x faster."))


def test_texts_by_agents_support_nothing(campaign: store.Campaign) -> None:
    Script({"v1": "ACCEPT"}).round(campaign)
    (record,) = campaign.records()
    invented = record.model_copy(
        update={
            "lesson": NOTHING.lesson.model_copy(update={"reason": "It is 77 % faster."}),
            "plan": plan(hypothesis="It makes it 7.7x faster."),
            "selection": Selection(language="toy", because="It is 7.7x faster."),
        }
    )
    recorded = texts.quantities_of(invented)
    faults = list(texts.text_faults(campaign.project, texts.record_texts(invented), recorded))
    assert len(faults) == 3


def test_a_file_outside_of_the_project_supports_nothing(campaign: store.Campaign) -> None:
    (campaign.project.root.parent / "a.json").write_text('{"speedup": 3}')
    (campaign.project.root / "b.md").write_text("It was 3x.")
    recorded = texts.quantities_of(campaign.manifest)

    def faults(text: str) -> list[str]:
        return list(texts.text_faults(campaign.project, {"lesson": text}, recorded))

    assert faults("It was 3x (x/b.md).")
    (campaign.project.root / "x").mkdir()
    assert faults("It was 3x (x/../../a.json).")
    (campaign.project.root / "x" / "b.md").write_text("It was 3x.")
    assert faults("It was 3x (x/b.md).") == []


def test_a_replay_leaves_out_sentences_with_figures() -> None:
    assert texts.drop_figures("It waits. It takes 3 us; then it works.") == "It waits. then it works."
    assert texts.drop_figures("Two\nlines.") == "Two\nlines."
