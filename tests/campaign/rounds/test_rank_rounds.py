"""Rounds over ranks: which version stands, what a record needs, and how damage shows and is mended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import campaign_kit
import pytest

from warpsmith import files
from warpsmith.campaign.rounds import rank_rounds
from warpsmith.campaign.rounds.rank_rounds import VERSION, RankCampaign, StoredRankRound
from warpsmith.core.evaluation import Decision, Provenance, Verdict, WorkloadResult
from warpsmith.errors import BadEntry, Busy, CorruptRecord, Misuse
from warpsmith.lab.ranks.models import RankEvaluation, RankTiming
from warpsmith.project import Project

WHY = "Each rank norms its own rows and gathers them."


@pytest.fixture
def ranks(project: Project) -> RankCampaign:
    return RankCampaign(project, "reduce", "cpu", 2)


def judged(path: Path, verdict: str = "ACCEPT", definition: str = "d" * 64) -> RankEvaluation:
    graded: Any = campaign_kit.evaluation(path).results[0].correctness
    provenance: Provenance = campaign_kit.evaluation(path).provenance
    return RankEvaluation(
        definition="reduce",
        ranks=2,
        provenance=provenance.model_copy(
            update={"solution_sha256": files.file_sha256(path), "definition_sha256": definition}
        ),
        trust=(),
        results=(WorkloadResult(workload="a", status="PASSED", correctness=graded),),
        times={"a": RankTiming(seconds=1e-3, samples=9, spread=0.1)},
        decision=Decision(verdict=Verdict(verdict), reason="as measured"),
    )


def close(ranks: RankCampaign, text: str, verdict: str = "ACCEPT", definition: str = "d" * 64) -> StoredRankRound:
    path = ranks.project.root / "v1.py"
    path.write_text(text)
    best = ranks.best(definition)
    return rank_rounds.close_rank_round(ranks, WHY, path, best, judged(path, verdict, definition))


def test_the_last_accepted_version_stands(ranks: RankCampaign) -> None:
    assert ranks.best("d" * 64) is None
    for text, verdict in (("1", "ACCEPT"), ("2", "ACCEPT"), ("3", "ROLLBACK")):
        close(ranks, text, verdict)
    standing = ranks.standing("d" * 64)
    assert (standing.best_round, [each.best_round for each in standing.rounds]) == (2, [None, 1, 2])
    best = ranks.best("d" * 64)
    assert best is not None
    assert (best.folder / VERSION).read_text() == "2", "an edit of the file changes no round"
    assert ranks.count_comparisons() == 3


def test_another_definition_begins_anew(ranks: RankCampaign) -> None:
    close(ranks, "1")
    assert ranks.best("e" * 64) is None
    assert close(ranks, "2", definition="e" * 64).record.best_round is None
    assert ranks.standing("d" * 64).best_round == 1


def test_rounds_are_chained_and_signed(ranks: RankCampaign) -> None:
    first, second = close(ranks, "1"), close(ranks, "2")
    assert second.record.previous_sha256 == first.sha256
    (ledger,) = rank_rounds.list_rank_ledgers(ranks.project)
    assert ledger.signature_faults(ledger.read_all()) == []
    forged = {**json.loads(first.path.read_text()), "hypothesis": "Something else was the reason."}
    data = (json.dumps(forged) + "\n").encode()
    first.path.write_bytes(data)
    (first.folder / "record.sha256").write_text(f"{files.file_sha256(first.path)}  record.json\n")
    with pytest.raises(CorruptRecord, match="not the record that the next one follows"):
        ledger.read_all()


def test_a_changed_copy_of_a_version_shows_and_is_mended(ranks: RankCampaign) -> None:
    close(ranks, "1")
    (close(ranks, "2").folder / VERSION).write_text("faster")
    with pytest.raises(CorruptRecord, match=r"not the version that was judged.*ranks reduce .*--repair"):
        ranks.best("d" * 64)
    assert any("round 2 is corrupt" in change for change in rank_rounds.repair_rank_rounds(ranks))
    assert ranks.standing("d" * 64).best_round == 1
    assert rank_rounds.repair_rank_rounds(ranks) == []
    assert close(ranks, "3").number == 3, "no number is used twice"


@pytest.mark.parametrize(
    ("hypothesis", "text", "error", "match"),
    [
        ("Faster.", "2", Misuse, "10 to 400"),
        ("It takes 12 % less time than before.", "2", BadEntry, "`12 %`"),
        (WHY, "1", Misuse, "version of round 1"),
    ],
)
def test_a_round_that_could_not_close_is_refused(
    ranks: RankCampaign, hypothesis: str, text: str, error: type[Exception], match: str
) -> None:
    close(ranks, "1")
    path = ranks.project.root / "new.py"
    path.write_text(text)
    with pytest.raises(error, match=match):
        rank_rounds.refuse_rank_round(ranks, hypothesis, path, "d" * 64)
    assert ranks.ledger.numbers() == [1]


def test_a_version_that_changed_meanwhile_is_not_recorded(ranks: RankCampaign) -> None:
    path = ranks.project.root / "v1.py"
    path.write_text("1")
    evaluation = judged(path)
    path.write_text("2")
    with pytest.raises(Misuse, match="changed while it was judged"):
        rank_rounds.close_rank_round(ranks, WHY, path, None, evaluation)
    assert ranks.ledger.numbers() == []


def test_a_judgement_without_a_verdict_on_the_version_is_no_round(ranks: RankCampaign) -> None:
    with pytest.raises(ValueError, match="verdict on the version"):
        close(ranks, "1", "INVALID")


def test_one_command_at_a_time(ranks: RankCampaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LOCK_WAIT_SECONDS", 0.05)
    with (
        rank_rounds.hold_rank_campaign(ranks),
        pytest.raises(Busy, match="held by"),
        rank_rounds.hold_rank_campaign(ranks),
    ):
        pass
