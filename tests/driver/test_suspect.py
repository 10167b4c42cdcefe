"""What a review called SUSPECT is struck when its round is closed, by whichever run comes to that."""

from __future__ import annotations

from typing import Any

import pytest

from warpsmith.campaign import start
from warpsmith.campaign.rounds import rounds, state
from warpsmith.driver import suspect
from warpsmith.driver.optimize import Progress, optimize
from warpsmith.errors import CorruptRecord

REASON = "Reviewer: It keeps results by the address of the input. (v2.toy:1)"


@pytest.fixture
def three(project: Any, make: Any) -> Any:
    """A campaign of at most three rounds."""
    return start.start(project, make.OP, "cpu", "toy", max_iterations=3)


@pytest.fixture
def suspicious(three: Any, designer: Any, lab: Any) -> Any:
    """A designer whose reviewer finds the second version wanting."""
    plain = designer.learn

    def learn(now: Any, step: Any, refused: str) -> Any:
        if step.round == 2:
            suspect.keep(three, 2, REASON)
        return plain(now, step, refused)

    designer.learn = learn
    return designer


def test_the_loop_goes_on_from_the_version_before(three: Any, suspicious: Any):
    ended: list[str] = []
    end = optimize(three, suspicious, Progress(end=lambda step, text: ended.append(text)))
    assert [record.parent for record in end.records] == [None, "toy/v1", "toy/v1"]
    struck = [record.struck.reason if record.struck else None for record in end.records]
    assert struck == [None, REASON, None]
    assert end.best_name == "toy/v3"
    assert "nothing: It was known already.; toy/v2 is struck" in ended
    assert not (three.folder / suspect.FILE).exists()


def test_a_run_that_died_between_closing_and_striking(
    three: Any, suspicious: Any, monkeypatch: pytest.MonkeyPatch
):
    close = rounds.close

    def dies(*arguments: Any) -> Any:
        kept = close(*arguments)
        if (three.folder / suspect.FILE).exists():
            raise KeyboardInterrupt
        return kept

    with monkeypatch.context() as patch:
        patch.setattr(rounds, "close", dies)
        with pytest.raises(KeyboardInterrupt):
            optimize(three, suspicious)
    assert state.read(three).best_name == "toy/v2"
    suspicious.breaks_at = "selection:3"
    with pytest.raises(KeyboardInterrupt):
        optimize(three, suspicious)
    assert state.read(three).best_name == "toy/v1"


def test_a_round_that_is_still_open_waits(three: Any, suspicious: Any):
    suspicious.breaks_at = "lesson:2"
    with pytest.raises(KeyboardInterrupt):
        optimize(three, suspicious)
    assert (state.read(three).best_name, suspect.strike(three)) == ("toy/v1", None)
    assert (three.folder / suspect.FILE).is_file()
    suspicious.breaks_at = ""
    assert optimize(three, suspicious).records[1].struck


def test_a_verdict_against_the_suspect_is_closed_first(three: Any, designer: Any, lab: Any):
    designer.breaks_at = "lesson:3"
    with pytest.raises(KeyboardInterrupt):
        optimize(three, designer)
    suspect.keep(three, 2, REASON)
    designer.breaks_at = ""
    end = optimize(three, designer)
    assert [bool(record.struck) for record in end.records] == [False, True, False]


def test_what_was_struck_already_is_done(three: Any, suspicious: Any):
    optimize(three, suspicious)
    suspect.keep(three, 2, REASON)
    assert suspect.strike(three) is None
    assert not (three.folder / suspect.FILE).exists()


def test_a_finding_that_does_not_read_is_one_sentence(three: Any):
    (three.folder / suspect.FILE).write_text("{")
    with pytest.raises(CorruptRecord, match=r"suspect\.json does not validate: .*; remove it\."):
        suspect.strike(three)
