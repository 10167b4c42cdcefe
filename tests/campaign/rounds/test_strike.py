"""Striking: the version leaves the lineage, its round stays, and the campaign goes on from the one before."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from campaign_kit import OP, Script, git, make_project, make_repository, use_toys

from warpsmith import files
from warpsmith.campaign import start
from warpsmith.campaign.calibration import calibrate
from warpsmith.campaign.evidence import evidence_check
from warpsmith.campaign.history import lineage, solutions, store
from warpsmith.campaign.history.records import STRUCK
from warpsmith.campaign.rounds import due_phase, state, strike
from warpsmith.campaign.rounds.resume import resume_campaign
from warpsmith.campaign.status import campaign_status
from warpsmith.core.evaluation import Verdict
from warpsmith.errors import CorruptRecord, MissingInput, Misuse
from warpsmith.ledger.store import DIGEST, RECORD
from warpsmith.project import Project

REASON = "It keeps results by the address of the input."


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A baseline, a better version, one that lost to it, and the next round begun."""
    root = tmp_path_factory.mktemp("played") / "project"
    with pytest.MonkeyPatch.context() as patch:
        use_toys(patch)
        made = start.start_campaign(make_project(root), OP, "cpu", "toy")
        script = Script({"v1": "ACCEPT", "v2": "ACCEPT", "v3": "ROLLBACK"})
        for _ in range(3):
            script.round(made)
        script.until(made, "design")
    return root


@pytest.fixture
def campaign(played: Path, tmp_path: Path) -> store.Campaign:
    root = tmp_path / "project"
    shutil.copytree(played, root)
    (found,) = store.list_campaigns(Project(root, root / "kernels", root / "devlog", root / "docs" / "knowledge"))
    return found


def test_the_version_before_is_best_again_and_the_round_stays(campaign: store.Campaign) -> None:
    folder = campaign.rounds / "002"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert b'"struck"' not in before[RECORD]
    kept = strike.strike_round(campaign, 2, f" {REASON}\n")
    assert kept.record.struck is not None
    assert (kept.record.struck.reason, kept.record.struck.record_sha256) == (REASON, kept.sha256)
    assert kept.record.verdict is Verdict.ROLLBACK
    assert kept.record.evaluation.decision.verdict is Verdict.ACCEPT
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    digest = f"{files.file_sha256(folder / STRUCK)}  {STRUCK}\n"
    before[DIGEST] += digest.encode()
    assert {name: after[name] for name in before} == before
    assert after.keys() - before.keys() == {STRUCK}
    now = state.read_state(campaign)
    assert now.best_name == "toy/v1"
    assert now.stagnation.not_improving == 2
    assert [p.round for p in calibrate(now.records).predictions] == [3], "a gain that was struck is none"
    found = campaign_status(now)
    assert [line.struck for line in found.rounds] == [None, REASON, None]
    assert found.rounds[1].verdict == "ACCEPT"


def test_what_rested_on_it_is_due_again_and_the_campaign_goes_on(campaign: store.Campaign) -> None:
    assert due_phase.find_due_phase(state.read_state(campaign)).step == "design"
    strike.strike_round(campaign, 2, REASON)
    step = due_phase.find_due_phase(state.read_state(campaign))
    assert (step.step, step.needs) == ("profile", "the best version, toy/v1")
    assert f"Round 2, toy/v2, was struck; do not build on it: {REASON}" in step.notes
    Script({"v4": "ACCEPT"}).round(campaign)
    now = state.read_state(campaign)
    assert (now.best_name, now.records[3].parent) == ("toy/v4", "toy/v1")
    assert strike.rounds_built_on(campaign, now.records[0]) == [now.records[3]]


def test_an_older_version_leaves_the_open_round_alone(campaign: store.Campaign) -> None:
    strike.strike_round(campaign, 1, REASON)
    now = state.read_state(campaign)
    assert (now.best_name, due_phase.find_due_phase(now).step) == ("toy/v2", "design")
    assert [record.round for record in strike.rounds_built_on(campaign, now.records[0])] == [2]
    strike.strike_round(campaign, 2, REASON)
    assert state.read_state(campaign).baseline, "nothing is left: the next round brings a baseline"


def test_its_source_is_no_new_version_and_what_lost_to_it_is_one(campaign: store.Campaign) -> None:
    project = campaign.project
    new = solutions.find_solution(project, OP, "toy/v4")
    lost = solutions.find_solution(project, OP, "toy/v3").path.read_text()
    new.path.write_text(lost)
    with pytest.raises(Misuse, match="rolled back in round 3"):
        solutions.refuse_duplicate(new, campaign.closed_rounds())
    strike.strike_round(campaign, 2, REASON)
    solutions.refuse_duplicate(new, campaign.closed_rounds())
    new.path.write_text(solutions.find_solution(project, OP, "toy/v2").path.read_text())
    with pytest.raises(Misuse, match="struck in round 2"):
        solutions.refuse_duplicate(new, campaign.closed_rounds())


def test_what_cannot_be_struck(campaign: store.Campaign) -> None:
    with pytest.raises(MissingInput, match="no closed round 9"):
        strike.strike_round(campaign, 9, REASON)
    with pytest.raises(Misuse, match="was not accepted"):
        strike.strike_round(campaign, 3, REASON)
    with pytest.raises(Misuse, match="reason"):
        strike.strike_round(campaign, 2, "bad")
    Script({"v4": "ROLLBACK"}).until(campaign, "lesson")
    with pytest.raises(Misuse, match="was judged against toy/v2 already; first close it"):
        strike.strike_round(campaign, 2, REASON)
    assert not (campaign.rounds / "002" / STRUCK).exists()
    Script({}).round(campaign)
    strike.strike_round(campaign, 2, REASON)
    with pytest.raises(Misuse, match="was struck before"):
        strike.strike_round(campaign, 2, REASON)


def test_a_strike_that_was_edited_shows(campaign: store.Campaign) -> None:
    kept = strike.strike_round(campaign, 2, REASON)
    path = campaign.rounds / "002" / STRUCK
    sound = path.read_text()
    path.write_text(sound.replace(kept.sha256, "0" * 64))
    with pytest.raises(CorruptRecord, match="strikes another record"):
        campaign.closed_rounds()
    path.write_text(sound.replace("keeps", "kept"))
    with pytest.raises(CorruptRecord, match=r"was edited: it does not match record\.sha256"):
        campaign.closed_rounds()
    path.write_text("{")
    with pytest.raises(CorruptRecord, match="does not read"):
        campaign.closed_rounds()


def test_a_strike_that_was_removed_shows_and_strikes_for_good(campaign: store.Campaign) -> None:
    strike.strike_round(campaign, 2, REASON)
    path = campaign.rounds / "002" / STRUCK
    path.unlink()
    says = "is missing, though record.sha256 lists it"
    with pytest.raises(CorruptRecord, match=says):
        campaign.closed_rounds()
    findings = [found.message for found in evidence_check.check_evidence(campaign.project, {}).stale]
    place = campaign.project.relative(path)
    assert f"{place} {says}; run `warpsmith resume --campaign {campaign.name}`." in findings
    assert any("round 2 is corrupt" in line for line in resume_campaign(campaign))
    assert state.read_state(campaign).best_name == "toy/v1", "it does not come back by that"


def test_resume_finishes_a_strike_that_was_interrupted(campaign: store.Campaign) -> None:
    folder = campaign.rounds / "002"
    before = (folder / DIGEST).read_bytes()
    strike.strike_round(campaign, 2, REASON)
    whole = (folder / DIGEST).read_bytes()
    (folder / DIGEST).write_bytes(before)
    assert state.read_state(campaign).best_name == "toy/v1"
    assert resume_campaign(campaign) == ["round 2 was being struck: finished it"]
    assert (folder / DIGEST).read_bytes() == whole
    assert resume_campaign(campaign) == []


def test_resume_sweeps_what_a_crash_left(campaign: store.Campaign) -> None:
    stray = campaign.rounds / "002" / f"{files.TEMPORARY_PREFIX}struck.json-1-0"
    stray.write_text("{")
    assert resume_campaign(campaign) == [f"removed {stray.name}, which an interrupted write left"]
    assert state.read_state(campaign).best_name == "toy/v2"


def test_the_branch_holds_the_strike_and_gives_it_back(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    make_repository(project.root)
    made = start.start_campaign(project, OP, "cpu", "toy", git="branch")
    script = Script({"v1": "ACCEPT", "v2": "ACCEPT"})
    script.round(made)
    script.round(made)
    strike.strike_round(made, 2, REASON)
    said = git(project.root, "log", "-1", "--format=%B", f"optimize/{made.name}")
    assert said.startswith(f"{OP} toy v2: struck (round 2, cpu)\n\nReason: {REASON}\n")
    assert [committed.round for committed in lineage.rounds_on_branch(made)] == [1, 2]
    assert lineage.sync_branch(made) == []
    (made.rounds / "002" / STRUCK).unlink()
    assert any("restored round 2" in line for line in resume_campaign(made))
    assert state.read_state(made).best_name == "toy/v1"
    assert STRUCK in (made.rounds / "002" / DIGEST).read_text()
    shutil.rmtree(made.rounds / "002")
    assert any("restored round 2" in line for line in resume_campaign(made))
    assert state.read_state(made).best_name == "toy/v1"
    assert lineage.sync_branch(made) == []
