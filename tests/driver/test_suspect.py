"""What a review called SUSPECT is struck when its round is closed, by whichever run comes to that."""

from __future__ import annotations

from typing import Any

import pytest

from warpsmith.campaign import start
from warpsmith.campaign.rounds import open_round, state
from warpsmith.driver import suspect
from warpsmith.driver.optimize import LoopProgress, run_loop
from warpsmith.errors import CorruptRecord

REASON = "Reviewer: It keeps results by the address of the input. (v2.toy:1)"


@pytest.fixture
def three(project: Any, make: Any) -> Any:
    """A campaign of at most three rounds."""
    return start.start_campaign(project, make.OP, "cpu", "toy", max_iterations=3)


@pytest.fixture
def suspicious(three: Any, designer: Any, lab: Any) -> Any:
    """A designer whose reviewer finds the second version wanting."""
    plain = designer.learn

    def learn(now: Any, step: Any, refused: str) -> Any:
        if step.round == 2:
            suspect.record_suspect(three, 2, REASON)
        return plain(now, step, refused)

    designer.learn = learn
    return designer


def test_the_loop_goes_on_from_the_version_before(three: Any, suspicious: Any):
    ended: list[str] = []
    end = run_loop(three, suspicious, LoopProgress(end=lambda step, text: ended.append(text)))
    assert [record.parent for record in end.records] == [None, "toy/v1", "toy/v1"]
    struck = [record.struck.reason if record.struck else None for record in end.records]
    assert struck == [None, REASON, None]
    assert end.best_name == "toy/v3"
    assert "nothing: It was known already.; toy/v2 is struck" in ended
    assert not (three.folder / suspect.FILE).exists()


def test_a_run_that_died_between_closing_and_striking(
    three: Any, suspicious: Any, monkeypatch: pytest.MonkeyPatch
):
    close = open_round.close_round

    def dies(*arguments: Any) -> Any:
        kept = close(*arguments)
        if (three.folder / suspect.FILE).exists():
            raise KeyboardInterrupt
        return kept

    with monkeypatch.context() as patch:
        patch.setattr(open_round, "close_round", dies)
        with pytest.raises(KeyboardInterrupt):
            run_loop(three, suspicious)
    assert state.read_state(three).best_name == "toy/v2"
    suspicious.breaks_at = "selection:3"
    with pytest.raises(KeyboardInterrupt):
        run_loop(three, suspicious)
    assert state.read_state(three).best_name == "toy/v1"


def test_a_round_that_is_still_open_waits(three: Any, suspicious: Any):
    suspicious.breaks_at = "lesson:2"
    with pytest.raises(KeyboardInterrupt):
        run_loop(three, suspicious)
    assert (state.read_state(three).best_name, suspect.strike_suspect(three)) == ("toy/v1", None)
    assert (three.folder / suspect.FILE).is_file()
    suspicious.breaks_at = ""
    assert run_loop(three, suspicious).records[1].struck


def test_a_verdict_against_the_suspect_is_closed_first(three: Any, designer: Any, lab: Any):
    designer.breaks_at = "lesson:3"
    with pytest.raises(KeyboardInterrupt):
        run_loop(three, designer)
    suspect.record_suspect(three, 2, REASON)
    designer.breaks_at = ""
    end = run_loop(three, designer)
    assert [bool(record.struck) for record in end.records] == [False, True, False]


def test_what_was_struck_already_is_done(three: Any, suspicious: Any):
    run_loop(three, suspicious)
    suspect.record_suspect(three, 2, REASON)
    assert suspect.strike_suspect(three) is None
    assert not (three.folder / suspect.FILE).exists()


def test_a_finding_that_does_not_read_is_one_sentence(three: Any):
    (three.folder / suspect.FILE).write_text("{")
    with pytest.raises(CorruptRecord, match=r"suspect\.json does not validate: .*; remove it\."):
        suspect.strike_suspect(three)
