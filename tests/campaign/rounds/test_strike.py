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
from warpsmith.campaign.evidence import evidence
from warpsmith.campaign.history import lineage, records, solutions, store
from warpsmith.campaign.rounds import state, steps, strike
from warpsmith.campaign.rounds.resume import resume
from warpsmith.campaign.status import status
from warpsmith.core.evaluation import Verdict
from warpsmith.errors import CorruptRecord, MissingInput, Misuse
from warpsmith.project import Project

REASON = "It keeps results by the address of the input."


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A baseline, a better version, one that lost to it, and the next round begun."""
    root = tmp_path_factory.mktemp("played") / "project"
    with pytest.MonkeyPatch.context() as patch:
        use_toys(patch)
        made = start.start(make_project(root), OP, "cpu", "toy")
        script = Script({"v1": "ACCEPT", "v2": "ACCEPT", "v3": "ROLLBACK"})
        for _ in range(3):
            script.round(made)
        script.until(made, "design")
    return root


@pytest.fixture
def campaign(played: Path, tmp_path: Path) -> store.Campaign:
    root = tmp_path / "project"
    shutil.copytree(played, root)
    (found,) = store.all(Project(root, root / "kernels", root / "devlog", root / "docs" / "knowledge"))
    return found


def test_the_version_before_is_best_again_and_the_round_stays(campaign: store.Campaign) -> None:
    folder = campaign.rounds / "002"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert b'"struck"' not in before[records.RECORD]
    kept = strike.strike(campaign, 2, f" {REASON}\n")
    assert kept.record.struck is not None
    assert (kept.record.struck.reason, kept.record.struck.record_sha256) == (REASON, kept.sha256)
    assert kept.record.verdict is Verdict.ROLLBACK
    assert kept.record.evaluation.decision.verdict is Verdict.ACCEPT
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    digest = f"{files.sha256(folder / records.STRUCK)}  {records.STRUCK}\n"
    before[records.DIGEST] += digest.encode()
    assert {name: after[name] for name in before} == before
    assert after.keys() - before.keys() == {records.STRUCK}
    now = state.read(campaign)
    assert now.best_name == "toy/v1"
    assert now.stagnation.not_improving == 2
    assert [p.round for p in calibrate(now.records).predictions] == [3], "a gain that was struck is none"
    found = status(now)
    assert [line.struck for line in found.rounds] == [None, REASON, None]
    assert found.rounds[1].verdict == "ACCEPT"


def test_what_rested_on_it_is_due_again_and_the_campaign_goes_on(campaign: store.Campaign) -> None:
    assert steps.next_step(state.read(campaign)).step == "design"
    strike.strike(campaign, 2, REASON)
    step = steps.next_step(state.read(campaign))
    assert (step.step, step.needs) == ("profile", "the best version, toy/v1")
    assert f"Round 2, toy/v2, was struck, not to be built on: {REASON}" in step.notes
    Script({"v4": "ACCEPT"}).round(campaign)
    now = state.read(campaign)
    assert (now.best_name, now.records[3].parent) == ("toy/v4", "toy/v1")
    assert strike.built_on(campaign, now.records[0]) == [now.records[3]]


def test_an_older_version_leaves_the_open_round_alone(campaign: store.Campaign) -> None:
    strike.strike(campaign, 1, REASON)
    now = state.read(campaign)
    assert (now.best_name, steps.next_step(now).step) == ("toy/v2", "design")
    assert [record.round for record in strike.built_on(campaign, now.records[0])] == [2]
    strike.strike(campaign, 2, REASON)
    assert state.read(campaign).baseline, "nothing is left: the next round brings a baseline"


def test_its_source_is_no_new_version_and_what_lost_to_it_is_one(campaign: store.Campaign) -> None:
    project = campaign.project
    new = solutions.at(project, OP, "toy/v4")
    lost = solutions.at(project, OP, "toy/v3").path.read_text()
    new.path.write_text(lost)
    with pytest.raises(Misuse, match="rolled back in round 3"):
        solutions.refuse_duplicate(new, campaign.kept())
    strike.strike(campaign, 2, REASON)
    solutions.refuse_duplicate(new, campaign.kept())
    new.path.write_text(solutions.at(project, OP, "toy/v2").path.read_text())
    with pytest.raises(Misuse, match="struck in round 2"):
        solutions.refuse_duplicate(new, campaign.kept())


def test_what_cannot_be_struck(campaign: store.Campaign) -> None:
    with pytest.raises(MissingInput, match="no closed round 9"):
        strike.strike(campaign, 9, REASON)
    with pytest.raises(Misuse, match="was not accepted"):
        strike.strike(campaign, 3, REASON)
    with pytest.raises(Misuse, match="reason"):
        strike.strike(campaign, 2, "bad")
    Script({"v4": "ROLLBACK"}).until(campaign, "lesson")
    with pytest.raises(Misuse, match="was judged against toy/v2 already; close it first"):
        strike.strike(campaign, 2, REASON)
    assert not (campaign.rounds / "002" / records.STRUCK).exists()
    Script({}).round(campaign)
    strike.strike(campaign, 2, REASON)
    with pytest.raises(Misuse, match="was struck already"):
        strike.strike(campaign, 2, REASON)


def test_a_strike_that_was_edited_shows(campaign: store.Campaign) -> None:
    kept = strike.strike(campaign, 2, REASON)
    path = campaign.rounds / "002" / records.STRUCK
    sound = path.read_text()
    path.write_text(sound.replace(kept.sha256, "0" * 64))
    with pytest.raises(CorruptRecord, match="strikes another record"):
        campaign.kept()
    path.write_text(sound.replace("keeps", "kept"))
    with pytest.raises(CorruptRecord, match=r"was edited: it does not match record\.sha256"):
        campaign.kept()
    path.write_text("{")
    with pytest.raises(CorruptRecord, match="does not read"):
        campaign.kept()


def test_a_strike_that_was_removed_shows_and_strikes_for_good(campaign: store.Campaign) -> None:
    strike.strike(campaign, 2, REASON)
    path = campaign.rounds / "002" / records.STRUCK
    path.unlink()
    says = "is missing, though record.sha256 tells of a strike"
    with pytest.raises(CorruptRecord, match=says):
        campaign.kept()
    findings = [found.message for found in evidence.check(campaign.project, {}).stale]
    place = campaign.project.relative(path)
    assert f"{place} {says}; run `warpsmith resume --campaign {campaign.name}`." in findings
    assert any("round 2 is corrupt" in line for line in resume(campaign))
    assert state.read(campaign).best_name == "toy/v1", "it does not come back by that"


def test_resume_finishes_a_strike_that_was_interrupted(campaign: store.Campaign) -> None:
    folder = campaign.rounds / "002"
    before = (folder / records.DIGEST).read_bytes()
    strike.strike(campaign, 2, REASON)
    whole = (folder / records.DIGEST).read_bytes()
    (folder / records.DIGEST).write_bytes(before)
    assert state.read(campaign).best_name == "toy/v1"
    assert resume(campaign) == ["round 2 was being struck: finished it"]
    assert (folder / records.DIGEST).read_bytes() == whole
    assert resume(campaign) == []


def test_resume_sweeps_what_a_crash_left(campaign: store.Campaign) -> None:
    stray = campaign.rounds / "002" / f"{files.TEMPORARY}struck.json-1-0"
    stray.write_text("{")
    assert resume(campaign) == [f"removed {stray.name}, which an interrupted write left"]
    assert state.read(campaign).best_name == "toy/v2"


def test_the_branch_holds_the_strike_and_gives_it_back(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    make_repository(project.root)
    made = start.start(project, OP, "cpu", "toy", git="branch")
    script = Script({"v1": "ACCEPT", "v2": "ACCEPT"})
    script.round(made)
    script.round(made)
    strike.strike(made, 2, REASON)
    said = git(project.root, "log", "-1", "--format=%B", f"optimize/{made.name}")
    assert said.startswith(f"{OP} toy v2: struck (round 2, cpu)\n\nReason: {REASON}\n")
    assert [committed.round for committed in lineage.on_branch(made)] == [1, 2]
    assert lineage.sync(made) == []
    (made.rounds / "002" / records.STRUCK).unlink()
    assert any("restored round 2" in line for line in resume(made))
    assert state.read(made).best_name == "toy/v1"
    assert records.STRUCK in (made.rounds / "002" / records.DIGEST).read_text()
    shutil.rmtree(made.rounds / "002")
    assert any("restored round 2" in line for line in resume(made))
    assert state.read(made).best_name == "toy/v1"
    assert lineage.sync(made) == []
