"""Corrupt records are named, quarantined and, where the branch holds them, restored; never skipped in silence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from campaign_kit import OP, Script, make_repository

from warpsmith.campaign import start
from warpsmith.campaign.history import lineage, records, solutions, store
from warpsmith.campaign.rounds import due_phase, state
from warpsmith.campaign.rounds.resume import resume_campaign
from warpsmith.errors import CorruptRecord, MissingInput
from warpsmith.project import Project

VERDICTS = {"v1": "ACCEPT", "v2": "ROLLBACK", "v3": "ACCEPT", "v4": "ROLLBACK"}


@pytest.fixture
def played(project: Project) -> store.Campaign:
    """Three closed rounds, no branch."""
    campaign = start.start_campaign(project, OP, "cpu", "toy", max_iterations=3)
    Script(VERDICTS).run(campaign)
    return campaign


@pytest.fixture
def branched(project: Project) -> store.Campaign:
    """The same with a branch."""
    make_repository(project.root)
    campaign = start.start_campaign(project, OP, "cpu", "toy", git="branch", max_iterations=3)
    Script(VERDICTS).run(campaign)
    return campaign


def record_of(campaign: store.Campaign, number: int) -> Path:
    return campaign.rounds / f"{number:03d}" / "record.json"


def refused(campaign: store.Campaign) -> str:
    with pytest.raises(CorruptRecord) as caught:
        campaign.records()
    return str(caught.value)


def edit_gain(path: Path) -> None:
    data = json.loads(path.read_text())
    data["plan"]["predicted_gain"] = 9.0
    path.write_text(json.dumps(data, indent=2) + "\n")


def with_digest(spoil: Callable[[Path], None]) -> Callable[[Path], None]:
    def both(path: Path) -> None:
        from warpsmith import files

        spoil(path)
        path.with_name("record.sha256").write_text(f"{files.file_sha256(path)}  record.json\n")

    return both


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


SPOILED: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut early": lambda path: path.write_bytes(path.read_bytes()[:1]),
    "cut in half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "cut by one": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "bit flipped": flip,
    "edited by hand": edit_gain,
    "byte order mark": lambda path: path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes()),
    "removed": Path.unlink,
    "digest removed": lambda path: path.with_name("record.sha256").unlink(),
    "NaN": with_digest(lambda path: void(path, '"predicted_gain": 0.2', '"predicted_gain": NaN')),
    "unknown field": with_digest(lambda path: void(path, "{", '{"extra": 1,')),
    "other round": with_digest(lambda path: void(path, '"round": 3', '"round": 2')),
    "snapshot changed": lambda path: next(path.parent.glob("toy-*")).write_text("another"),
}


def void(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED.keys())
def test_last_record_spoiled(played: store.Campaign, spoil: Callable[[Path], object]) -> None:
    solution = played.project.kernels / OP / "toy" / "v3.toy"
    solution.write_text("edited since\n")  # so that the snapshot cannot be taken from it
    before = [record.round for record in played.records()]
    spoil(record_of(played, 3))
    message = refused(played)
    assert str(played.rounds / "003") in message
    assert f"warpsmith resume --campaign {played.name}" in message

    done = resume_campaign(played)
    assert any("round 3 is corrupt" in line and "quarantine/003-1" in line for line in done)
    assert [record.round for record in played.records()] == before[:-1]
    assert (played.rounds / "quarantine" / "003-1").is_dir()
    assert resume_campaign(played) == []
    assert state.read_state(played).number == 4, "a number is never given twice"
    assert due_phase.find_due_phase(state.read_state(played)).phase == "PROFILE"


def test_every_truncation_of_the_last_record(played: store.Campaign) -> None:
    path = record_of(played, 3)
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        assert "003" in refused(played)
    path.write_bytes(whole)
    assert len(played.records()) == 3


def test_edit_with_a_matching_digest_breaks_the_chain(played: store.Campaign) -> None:
    with_digest(edit_gain)(record_of(played, 2))
    assert "is not the record that the next one follows" in refused(played)
    assert any("round 2 is corrupt" in line for line in resume_campaign(played))
    assert [record.round for record in played.records()] == [1, 3]


def test_middle_record_lost_leaves_the_later_ones(played: store.Campaign) -> None:
    shutil.rmtree(played.rounds / "002")
    assert "is missing" in refused(played)
    assert any("round 2 is missing" in line for line in resume_campaign(played))
    assert [record.round for record in played.records()] == [1, 3]
    assert resume_campaign(played) == []


def test_edited_snapshot_is_taken_from_the_version(played: store.Campaign) -> None:
    next((played.rounds / "003").glob("toy-*")).write_text("edited")
    assert "is not the file that the round judged" in refused(played)
    assert any("took the lost snapshot" in line for line in resume_campaign(played))
    assert len(played.records()) == 3


def test_without_a_snapshot_the_version_itself_stands_for_it(played: store.Campaign) -> None:
    versions = played.project.kernels / OP
    snapshot = next((played.rounds / "003").glob("toy-*"))
    assert records.judged_file(played.closed_rounds()[2], versions) == snapshot
    snapshot.unlink()
    stored = played.closed_rounds()[2]
    assert records.judged_file(stored, versions) == versions / f"{stored.record.solution}.toy"
    (versions / f"{stored.record.solution}.toy").write_text("edited")
    assert len(played.closed_rounds()) == 3, "the record is sound; only its version has changed"
    with pytest.raises(MissingInput, match=r"v3\.toy is not the file that round 3 judged"):
        records.judged_file(stored, versions)
    assert solutions.next_version_number(played.project, OP, "toy") == 4


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED.keys())
def test_accepted_round_is_restored_from_the_branch(
    branched: store.Campaign, spoil: Callable[[Path], object]
) -> None:
    (branched.project.kernels / OP / "toy" / "v3.toy").unlink()
    before = [kept.sha256 for kept in branched.closed_rounds()]
    spoil(record_of(branched, 3))
    done = resume_campaign(branched)
    assert any("restored round 3" in line for line in done), done
    assert [kept.sha256 for kept in branched.closed_rounds()] == before
    assert [c.sha256 for c in lineage.rounds_on_branch(branched)] == [before[0], before[2]]
    assert resume_campaign(branched) == []


def test_removed_accepted_round_is_restored_from_the_branch(branched: store.Campaign) -> None:
    shutil.rmtree(branched.rounds / "003")
    resume_campaign(branched)
    assert [record.round for record in branched.records()] == [1, 2, 3]


def test_unreadable_step_is_dropped_with_what_rests_on_it(campaign: store.Campaign) -> None:
    script = Script(VERDICTS)
    script.round(campaign)
    script.until(campaign, "outcome")
    plan = campaign.open / "plan.json"
    plan.write_bytes(plan.read_bytes()[:20])
    with pytest.raises(CorruptRecord, match=r"plan\.json does not read"):
        state.read_state(campaign)
    done = resume_campaign(campaign)
    assert [line.split()[0] for line in done] == ["plan.json", "verdict.json", "profile_after.json"]
    kept = {path.name for path in (campaign.rounds / "quarantine").iterdir()}
    assert kept == {"open-plan-1", "open-verdict-1", "open-profile_after-1"}
    assert due_phase.find_due_phase(state.read_state(campaign)).step == "plan"
    assert resume_campaign(campaign) == []
    script.round(campaign)
    assert len(campaign.records()) == 2


def test_lost_snapshot_of_the_open_round_is_taken_from_the_version(campaign: store.Campaign) -> None:
    Script(VERDICTS).until(campaign, "outcome")
    copy = campaign.open / "toy-v1.toy"
    copy.unlink()
    assert resume_campaign(campaign) == ["took the lost copy of toy/v1 from kernels/scale/toy/v1.toy"]
    assert copy.is_file()
    assert due_phase.find_due_phase(state.read_state(campaign)).step == "outcome"


def test_lost_snapshot_of_a_changed_version_drops_the_verdict_alone(
    campaign: store.Campaign,
) -> None:
    Script(VERDICTS).until(campaign, "outcome")
    (campaign.open / "toy-v1.toy").unlink()
    version = campaign.project.kernels / OP / "toy" / "v1.toy"
    judged = version.read_text()
    version.write_text("another\n")
    assert any(line.startswith("verdict.json") for line in resume_campaign(campaign))
    assert due_phase.find_due_phase(state.read_state(campaign)).produces == "kernels/scale/toy/v2.toy"
    version.write_text(judged)
    assert due_phase.find_due_phase(state.read_state(campaign)).produces == "kernels/scale/toy/v2.toy"


def test_record_lost_while_closing_is_filed_again(
    campaign: store.Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script(VERDICTS)
    script.until(campaign, "lesson")
    with monkeypatch.context() as patch:
        patch.setattr(store.Campaign, "drop_open", lambda self: None)
        script.lesson(campaign, state.read_state(campaign))
    record_of(campaign, 1).write_bytes(b"")
    resume_campaign(campaign)
    assert [record.solution for record in campaign.records()] == ["toy/v1"]
    assert [record.round for record in campaign.records()] == [2]


def test_digest_is_what_sha256sum_reads(played: store.Campaign) -> None:
    from warpsmith import files

    text = (played.rounds / "001" / "record.sha256").read_text()
    assert text == f"{files.file_sha256(record_of(played, 1))}  record.json\n"
    assert played.ledger.numbers() == [1, 2, 3]
