"""What vanishes from an open round is reported, and a judged version is not judged again for it."""

from __future__ import annotations

import json
import shutil

import pytest
from campaign_kit import Script

from warpsmith.campaign.evidence import evidence_check
from warpsmith.campaign.history import journal, store
from warpsmith.campaign.rounds import due_phase, open_round, state
from warpsmith.campaign.rounds.resume import resume_campaign
from warpsmith.errors import CorruptRecord, Misuse

VERDICTS = {"v1": "ACCEPT", "v2": "ROLLBACK", "v3": "ACCEPT"}


def due(campaign: store.Campaign) -> due_phase.DuePhase:
    return due_phase.find_due_phase(state.read_state(campaign))


def findings(campaign: store.Campaign) -> list[str]:
    return [finding.message for finding in evidence_check.check_evidence(campaign.project, {}).stale]


@pytest.fixture
def judged(campaign: store.Campaign) -> store.Campaign:
    """Its second version has a verdict, and the round is open."""
    script = Script(VERDICTS)
    script.round(campaign)
    script.until(campaign, "outcome")
    assert due(campaign).step == "outcome"
    return campaign


def test_a_whole_campaign_has_no_finding(campaign: store.Campaign) -> None:
    script = Script(VERDICTS)
    for _ in range(3):
        script.round(campaign)
    assert state.read_state(campaign).lost == ()
    assert [message for message in findings(campaign) if "gone" in message] == []


def test_a_verdict_that_vanishes_counts(judged: store.Campaign) -> None:
    shutil.rmtree(judged.open)
    step = due(judged)
    assert step.step == "selection"
    assert any("The verdict on toy/v2 is lost" in note for note in step.notes)
    script = Script(VERDICTS)
    script.until(judged, "design")
    assert due(judged).produces == "kernels/scale/toy/v3.toy"


def test_its_version_is_refused_under_another_number(judged: store.Campaign) -> None:
    (judged.open / "verdict.json").unlink()
    folder = judged.project.kernels / "scale" / "toy"
    for text in ((folder / "v2.toy").read_text(), (folder / "v2.toy").read_text().replace(" ", "\n")):
        (folder / "v3.toy").write_text(text)
        assert due(judged).step == "design"
        with pytest.raises(Misuse, match=r"v3\.toy was judged as toy/v2 in round 2"):
            open_round.version_to_judge(judged)
    (folder / "v3.toy").write_text("something else\n")
    assert open_round.version_to_judge(judged).name == "toy/v3"


def test_of_a_baseline_too(campaign: store.Campaign) -> None:
    Script(VERDICTS).until(campaign, "outcome")
    shutil.rmtree(campaign.open)
    assert due(campaign).produces == "kernels/scale/toy/v2.toy"


@pytest.mark.parametrize("part", ["profile", "selection", "plan", "verdict"])
def test_evidence_check_names_what_is_gone_until_resume_has_said_so(judged: store.Campaign, part: str) -> None:
    (judged.open / f"{part}.json").unlink()
    name = f"rounds/open/{part}.json is gone or was edited since it was written"
    assert [message for message in findings(judged) if name in message]
    assert any(f"{part}.json is gone" in line for line in resume_campaign(judged))
    assert not [message for message in findings(judged) if name in message]
    assert resume_campaign(judged) == []


def test_an_edited_part_is_a_finding(judged: store.Campaign) -> None:
    path = judged.open / "plan.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"predicted_gain": 0.9}))
    assert [message for message in findings(judged) if "plan.json is gone or was edited" in message]


def test_a_campaign_without_a_journal_is_sound(judged: store.Campaign) -> None:
    (judged.folder / journal.JOURNAL).unlink()
    assert state.read_state(judged).lost == ()
    assert not [message for message in findings(judged) if "gone" in message]


def test_a_torn_journal_is_corrupt(judged: store.Campaign) -> None:
    path = judged.folder / journal.JOURNAL
    path.write_text(path.read_text()[:-10])
    with pytest.raises(CorruptRecord, match="journal"):
        state.read_state(judged)
    assert [message for message in findings(judged) if "journal.jsonl does not read" in message]
    assert "dropped 1 unreadable line of journal.jsonl" in resume_campaign(judged)
    assert resume_campaign(judged) == []
    assert state.read_state(judged).open.verdict


def test_a_lost_version_is_known_when_its_file_is_renamed_too(judged: store.Campaign) -> None:
    shutil.rmtree(judged.open)
    Script(VERDICTS).until(judged, "design")
    folder = judged.project.kernels / "scale" / "toy"
    (folder / "v3.toy").write_text((folder / "v2.toy").read_text().replace(" ", "\n"))
    (folder / "v2.toy").unlink()
    with pytest.raises(Misuse, match="that verdict is gone"):
        open_round.version_to_judge(judged)


def test_an_edited_verdict_does_not_count(judged: store.Campaign) -> None:
    path = judged.open / "verdict.json"
    sound = path.read_text()
    path.write_text(sound.replace('"ROLLBACK"', '"ACCEPT"'))
    with pytest.raises(CorruptRecord, match=r"verdict\.json was edited after the judgement"):
        open_round.record_outcome(judged)
    path.write_text(sound)
    assert due(judged).step == "outcome"
    path.write_text(sound.replace('"ROLLBACK"', '"ACCEPT"'))
    assert any("verdict.json is not as the lab wrote it" in line for line in resume_campaign(judged))
    assert [line.solution for line in state.read_state(judged).lost] == ["toy/v2"]
    assert resume_campaign(judged) == []


def test_a_kill_between_verdict_and_journal_is_no_edit(judged: store.Campaign) -> None:
    path = judged.folder / journal.JOURNAL
    path.write_text("".join(line for line in path.read_text().splitlines(True) if '"toy/v2"' not in line))
    assert due(judged).step == "outcome"


def test_a_line_that_does_not_read_is_named_by_its_number(judged: store.Campaign) -> None:
    path = judged.folder / journal.JOURNAL
    first, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + b"\xff torn\n" + b"".join(rest))
    with pytest.raises(CorruptRecord, match=r"journal\.jsonl does not read: line 2: .*warpsmith resume"):
        state.read_state(judged)
    resume_campaign(judged)
    assert path.read_bytes() == first + b"".join(rest)


def test_a_line_is_added_after_one_without_its_end(judged: store.Campaign) -> None:
    path = judged.folder / journal.JOURNAL
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines))
    open_round.record_outcome(judged)
    assert path.read_text().splitlines()[:-1] == lines
    assert state.read_state(judged).open.outcome
