"""False wins: the same code judged against itself, with scripted timing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from warpsmith.core.evaluation import BEST, Aggregate, Decision, Interval, Verdict
from warpsmith.lab.gate.decision import ProvisionalDecision
from warpsmith.lab.gate_tests import false_wins, unfinished
from warpsmith.lab.machine import hardware


@dataclass
class ScriptedTiming:
    """Paired timing with scripted outcomes."""

    outcomes: Iterator[tuple[Verdict, float, bool]]

    def settle(self, *_: object) -> ProvisionalDecision:
        verdict, speedup, ambiguous = next(self.outcomes)
        found = Decision(verdict=verdict, reason="as scripted", against=BEST, ambiguous=ambiguous)
        interval = Interval(low=0.9, high=1.1)
        whole = Aggregate(against=BEST, speedup=speedup, interval=interval, worst_workload="a", worst=speedup)
        lost = {"a": speedup} if speedup < 1 else {}
        return ProvisionalDecision(True, found, whole, lost, needs_confirmation=verdict.accepted or bool(lost))


class Alike:
    """Two workers, reduced to the attributes that are used."""

    device = "cpu"
    workloads = (SimpleNamespace(name="64x64"),)
    file = SimpleNamespace(definition=SimpleNamespace(description="y = x"))
    open_session = None
    restarts = 0

    def __init__(self, *_: object) -> None: ...

    def restart(self) -> None:
        Alike.restarts += 1

    def __enter__(self) -> Alike:
        return self

    def __exit__(self, *_: object) -> None: ...


def test_false_wins_are_counted_with_their_interval(workshop, monkeypatch: pytest.MonkeyPatch):
    rolled = (Verdict.ROLLBACK, 1.001, False)
    accepted, slower = (Verdict.ACCEPT, 1.03, False), (Verdict.ROLLBACK, 0.97, False)
    judgements = [
        [accepted, accepted], [accepted, slower], [(Verdict.ROLLBACK, 1.01, True)],
        [slower, slower], [slower, rolled], [slower, accepted],
    ]  # fmt: skip
    script = iter([race for judgement in judgements for race in judgement] + [rolled] * 94)
    monkeypatch.setattr(Alike, "restarts", 0)
    monkeypatch.setattr(false_wins, "IdenticalSides", Alike)
    monkeypatch.setattr(false_wins, "PairedTiming", lambda *_: ScriptedTiming(script))
    target = hardware.read_target_page(workshop.project, "cpu").target
    records = list(false_wins.count_false_wins(target, workshop.measurement(), 100))
    assert [record.runs for record in records] == list(range(1, 101))
    assert [record.finished for record in records] == [False] * 99 + [True]
    found = records[-1]
    assert (found.accepted, found.ambiguous, found.regressions, found.none) == (1, 4, 1, 94)
    assert Alike.restarts == 105  # a gain or a loss is confirmed in fresh processes
    assert found.largest_gain == pytest.approx(0.03)
    assert 0.05 < found.upper < 0.06
    assert found.within_rate
    assert not found.model_copy(update={"accepted": 3}).within_rate


def test_an_unfinished_record_is_gone_on_with(workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    script = iter([("accepted", 0.03), ("none", 0.001), ("ambiguous", -0.001), ("none", 0.002)])
    monkeypatch.setattr(false_wins, "IdenticalSides", Alike)
    monkeypatch.setattr(false_wins, "_judge", lambda *_: next(script))
    target, measured = hardware.read_target_page(workshop.project, "cpu").target, workshop.measurement()
    path = tmp_path / "aa.json"
    assert false_wins.read_earlier_false_wins(path, target, measured, 4) == (None, "")
    begun = next(false_wins.count_false_wins(target, measured, 4))
    unfinished.save_record(path, begun)
    earlier, why = false_wins.read_earlier_false_wins(path, target, measured, 4)
    assert (earlier, why) == (begun, "")
    found = list(false_wins.count_false_wins(target, measured, 4, earlier=earlier))[-1]
    assert (found.runs, found.accepted, found.none, found.ambiguous, found.finished) == (4, 1, 2, 1, True)
    assert found.largest_gain == 0.03
    (whole,) = false_wins.count_false_wins(target, measured, 1, earlier=begun)  # all judgements are there already
    assert whole == begun.model_copy(update={"finished": True})


def test_a_record_that_is_not_gone_on_with(workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(false_wins, "IdenticalSides", Alike)
    monkeypatch.setattr(false_wins, "_judge", lambda *_: ("none", 0.0))
    target, measured = hardware.read_target_page(workshop.project, "cpu").target, workshop.measurement()
    begun = list(false_wins.count_false_wins(target, measured, 3))[1]
    path = tmp_path / "aa.json"
    unfinished.save_record(path, begun)
    assert false_wins.read_earlier_false_wins(path, target, measured, 1) == (
        None,
        "it holds 2 judgements, more than the 1 that are asked for",
    )
    other = workshop.measurement(floor=0.4)
    assert false_wins.read_earlier_false_wins(path, target, other, 3) == (
        None,
        "the A/A floor was measured again since",
    )
