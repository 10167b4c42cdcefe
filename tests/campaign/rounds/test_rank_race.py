"""Final race over ranks: who takes part, what is written, and what is not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_rank_rounds import close, judged

from warpsmith.campaign.rounds import rank_race
from warpsmith.campaign.rounds.rank_rounds import VERSION, RankCampaign
from warpsmith.errors import CorruptRecord, MachineFailed, MissingInput
from warpsmith.lab.ranks.judge import RankRequest
from warpsmith.project import Project

DEFINITION = "d" * 64


@pytest.fixture
def ranks(project: Project) -> RankCampaign:
    return RankCampaign(project, "reduce", "cpu", 2)


class Judge:
    """A scripted judgement: `verdict` by the name of the rival's folder or file."""

    def __init__(self, **verdicts: str) -> None:
        self.verdicts, self.asked = verdicts, list[tuple[str, str]]()

    def __call__(self, request: RankRequest) -> Any:
        rival = "alone"
        if request.against:
            rival = request.against.parent.name if request.against.name == VERSION else request.against.name
        self.asked.append((request.source.read_text(), rival))
        copy = request.project.root / "v1.py"  # the name that samples of records take
        copy.write_bytes(request.source.read_bytes())
        return judged(copy, self.verdicts.get(rival, "ACCEPT"))


def race(ranks: RankCampaign, judge: Judge, *peers: Path) -> rank_race.RankRace:
    file: Any = SimpleNamespace(sha256=DEFINITION)
    return rank_race.race_best_version(ranks, RankRequest(ranks.project, file, Path("any")), peers, judge)


def test_the_best_version_meets_the_first_one_and_peers(ranks: RankCampaign, tmp_path: Path) -> None:
    for text, verdict in (("1", "ROLLBACK"), ("2", "ACCEPT"), ("3", "ACCEPT"), ("4", "ACCEPT"), ("5", "ROLLBACK")):
        close(ranks, text, verdict)
    (peer := tmp_path / "nccl.py").write_text("peer")
    judge = Judge()
    raced = race(ranks, judge, peer)
    assert judge.asked == [("4", "002"), ("4", "nccl.py")]
    assert next(iter(raced.judgements)) == "round 2"
    best = ranks.best(DEFINITION)
    assert best is not None
    assert rank_race.read_rank_race(ranks, best) == raced


def test_a_first_version_runs_alone(ranks: RankCampaign) -> None:
    close(ranks, "1")
    assert list(race(ranks, judge := Judge()).judgements) == [rank_race.ALONE]
    assert judge.asked == [("1", "alone")]


def test_a_race_is_signed_and_an_edit_shows(ranks: RankCampaign) -> None:
    close(ranks, "1")
    race(ranks, Judge())
    ledger, path = ranks.ledger, rank_race.rank_race_path(ranks)
    assert ledger.signature_faults(ledger.read_all()) == []
    sound = path.read_bytes()
    path.write_bytes(sound.replace(b'"round": 1', b'"round": 2'))
    ((found, fault),) = ledger.signature_faults(ledger.read_all())
    assert found == path
    assert "signature" in fault
    path.write_bytes(sound)
    path.with_suffix(".sig").unlink()
    assert len(ledger.signature_faults(ledger.read_all())) == 1


def test_a_later_version_needs_a_race_of_its_own(ranks: RankCampaign) -> None:
    close(ranks, "1")
    race(ranks, Judge())
    best = close(ranks, "2")
    assert rank_race.read_rank_race(ranks, best) is None


def test_where_the_machine_fails_nothing_is_written(ranks: RankCampaign) -> None:
    close(ranks, "1")
    close(ranks, "2")
    with pytest.raises(MachineFailed, match="round 1"):
        race(ranks, Judge(**{"001": "INVALID"}))
    assert not rank_race.rank_race_path(ranks).exists()


def test_without_an_accepted_version_there_is_no_race(ranks: RankCampaign) -> None:
    close(ranks, "1", "ROLLBACK")
    with pytest.raises(MissingInput, match="no accepted version"):
        race(ranks, Judge())


def test_a_torn_race_names_its_cure(ranks: RankCampaign) -> None:
    best = close(ranks, "1")
    rank_race.rank_race_path(ranks).write_text("{")
    with pytest.raises(CorruptRecord, match="rm "):
        rank_race.read_rank_race(ranks, best)
