"""A/A judgements on one device: their outcomes, with scripted timing, and a machine that fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from warpsmith.core.evaluation import BEST, Aggregate, Decision, Interval, Verdict
from warpsmith.errors import MachineFailed
from warpsmith.lab.gate.decision import ProvisionalDecision
from warpsmith.lab.gate_tests import identical_judgements
from warpsmith.lab.gate_tests.identical_judgements import judge_on_device
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


@pytest.fixture(autouse=True)
def alike(workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Alike, "restarts", 0)
    monkeypatch.setattr(identical_judgements, "IdenticalSides", Alike)
    measured = workshop.measurement()
    monkeypatch.setattr(identical_judgements.measurement, "ensure_measurement", lambda *_: measured)


def test_outcomes(workshop, monkeypatch: pytest.MonkeyPatch):
    rolled = (Verdict.ROLLBACK, 1.001, False)
    accepted, slower = (Verdict.ACCEPT, 1.03, False), (Verdict.ROLLBACK, 0.97, False)
    judgements = [
        [accepted, accepted], [accepted, slower], [(Verdict.ROLLBACK, 1.01, True)],
        [slower, slower], [slower, rolled], [slower, accepted],
    ]  # fmt: skip
    script = iter([race for judgement in judgements for race in judgement] + [rolled] * 4)
    monkeypatch.setattr(identical_judgements, "PairedTiming", lambda *_: ScriptedTiming(script))
    target = hardware.read_target_page(workshop.project, "cpu").target
    made = list(judge_on_device(workshop.project, target, "cpu", 10))
    assert Counter(each.outcome for each in made) == {"accepted": 1, "ambiguous": 4, "regressions": 1, "none": 4}
    assert Alike.restarts == 15  # a gain or a loss is confirmed in fresh processes
    assert max(each.gain for each in made) == pytest.approx(0.03)


def test_a_judgement_is_made_again_if_the_machine_fails(workshop, monkeypatch: pytest.MonkeyPatch):
    script = iter("!..!.!!")

    def judge(*_: object) -> tuple[str, float]:
        if next(script) == "!":
            raise MachineFailed("a worker died")
        return "none", 0.0

    monkeypatch.setattr(identical_judgements, "_judge", judge)
    target, notices = hardware.read_target_page(workshop.project, "cpu").target, []
    judgements = judge_on_device(workshop.project, target, "cpu", 9, notices.append)
    assert [next(judgements).outcome for _ in range(3)] == ["none"] * 3
    with pytest.raises(MachineFailed, match="a worker died"):
        next(judgements)
    assert len(notices) == 3
