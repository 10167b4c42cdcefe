"""Attempts: a version that does not build costs no round, a limited number of times."""

from __future__ import annotations

from pathlib import Path

import pytest
from campaign_kit import Script, evaluation

from warpsmith.campaign.history import store
from warpsmith.campaign.rounds import attempts, due_phase, open_round, resume, state
from warpsmith.campaign.status import campaign_status
from warpsmith.core.evaluation import Evaluation
from warpsmith.errors import Misuse

BROKEN = {"workload": "*", "status": "COMPILE_ERROR", "message": "line 3: expected `;`"}
STEPS = [{"name": name, "state": "passed", "notes": [], "seconds": 0.1} for name in ("lint", "build", "timing")]


def failure(path: Path, status: str = "COMPILE_ERROR", steps: int = 2) -> Evaluation:
    changes = {"results": [BROKEN | {"status": status}], "steps": STEPS[:steps]}
    return evaluation(path, "ROLLBACK", None, **changes)


def attempt(campaign: store.Campaign, text: str, **changes: object) -> None:
    """Write the version that is due and have it judged as one that does not build."""
    solution = state.read_state(campaign).solution
    assert solution
    solution.path.parent.mkdir(parents=True, exist_ok=True)
    solution.path.write_text(text)
    open_round.record_verdict(campaign, failure(open_round.version_to_judge(campaign).path, **changes))  # type: ignore[arg-type]


def due(campaign: store.Campaign) -> due_phase.DuePhase:
    return due_phase.find_due_phase(state.read_state(campaign))


def test_the_same_version_is_due_again_until_its_file_changes(campaign: store.Campaign) -> None:
    attempt(campaign, "a typo")
    step = due(campaign)
    assert (step.round, step.step, step.produces) == (1, "design", "kernels/scale/toy/v1.toy")
    assert any("Attempt 1 of 5 did not build" in note for note in step.notes)
    assert "line 3: expected `;`" in step.notes  # what the compiler said
    with pytest.raises(Misuse, match=r"v1\.toy has not changed\. Attempt 1 of 5"):
        open_round.version_to_judge(campaign)
    with pytest.raises(Misuse, match="first write"):
        open_round.record_outcome(campaign)
    attempt(campaign, "another typo")
    assert campaign_status(state.read_state(campaign)).attempts == 2
    assert campaign.read_part("verdict", Evaluation) is None
    Script({"v1": "ACCEPT"}).round(campaign)
    (record,) = campaign.records()
    assert (record.round, record.solution, record.attempts) == (1, "toy/v1", 3)
    assert sorted(path.name for path in (campaign.rounds / "001").glob("attempt-*")) == [
        "attempt-1.json", "attempt-2.json",
    ]  # fmt: skip
    assert campaign_status(state.read_state(campaign)).rounds[0].attempts == 3
    assert due(campaign).step == "selection"


def test_they_are_limited(campaign: store.Campaign) -> None:
    for number in range(attempts.MOST_ATTEMPTS):
        attempt(campaign, f"typo {number}")
        assert state.read_state(campaign).open.verdict is None
    assert any("the next failure to build is the round's verdict" in note for note in due(campaign).notes)
    attempt(campaign, "one typo too many")
    assert due(campaign).step == "outcome"
    Script({}).round(campaign)
    (record,) = campaign.records()
    assert (record.verdict, record.attempts, record.evaluation.status) == ("ROLLBACK", 6, "COMPILE_ERROR")


@pytest.mark.parametrize("changes", [{"status": "RUNTIME_ERROR"}, {"status": "REFUSED", "steps": 1}, {"steps": 3}])
def test_whatever_ran_or_broke_a_rule_is_a_verdict(campaign: store.Campaign, changes: dict[str, object]) -> None:
    attempt(campaign, "it runs", **changes)
    assert state.read_state(campaign).open.attempts == ()
    assert due(campaign).step == "outcome"


def test_a_stop_condition_waits_for_the_open_round(campaign: store.Campaign) -> None:
    script = Script({"v1": "ACCEPT", "v2": "ACCEPT"})
    script.round(campaign)
    script.until(campaign, "design")
    attempt(campaign, "a typo")
    for name in ("profile", "selection", "plan"):
        (campaign.open / f"{name}.json").unlink()
    assert due(campaign).step == "selection"


def test_an_attempt_that_does_not_read_is_dropped(campaign: store.Campaign) -> None:
    attempt(campaign, "a typo")
    (campaign.open / "attempt-1.json").write_text("{")
    assert any("attempt-1" in line for line in resume.resume_campaign(campaign))
    assert state.read_state(campaign).open.attempts == ()


def test_a_failed_attempt_can_be_conceded(campaign: store.Campaign) -> None:
    with pytest.raises(Misuse, match="no failed attempt"):
        open_round.concede_attempt(campaign)
    attempt(campaign, "a typo")
    open_round.concede_attempt(campaign)
    assert due(campaign).step == "outcome"
    Script({}).round(campaign)
    assert [(r.verdict, r.attempts) for r in campaign.records()] == [("ROLLBACK", 1)]


def test_records_of_before_read_as_one_attempt(campaign: store.Campaign) -> None:
    Script({"v1": "ACCEPT"}).round(campaign)
    assert '"attempts"' not in (campaign.rounds / "001" / "record.json").read_text()
    assert campaign.records()[0].attempts == 1


def test_an_attempt_whose_file_is_gone_counts(campaign: store.Campaign) -> None:
    for number in range(attempts.MOST_ATTEMPTS):
        attempt(campaign, f"typo {number}")
        (campaign.open / f"attempt-{number + 1}.json").unlink()
        resume.resume_campaign(campaign)
    assert campaign_status(state.read_state(campaign)).attempts == attempts.MOST_ATTEMPTS
    attempt(campaign, "one typo too many")
    assert due(campaign).step == "outcome"
    Script({}).round(campaign)
    assert [record.attempts for record in campaign.records()] == [attempts.MOST_ATTEMPTS + 1]
