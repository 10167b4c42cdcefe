"""The best version is held against the time that it was accepted with, beside the reference."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from warpsmith.core.evaluation import BEST, REFERENCE, Verdict
from warpsmith.core.trust import MACHINE_IDLE, Check
from warpsmith.errors import MachineFailed
from warpsmith.lab.gate.incumbent import find_retiming_fault, require_accepted_speed
from warpsmith.lab.timing.samples import Samples

MACHINE = SimpleNamespace(id="m1")


def accepted(seconds: float = 1.0, reference: float = 2.0, machine: str = "m1") -> SimpleNamespace:
    timing = SimpleNamespace(
        seconds=seconds,
        against=lambda side: SimpleNamespace(other_seconds=reference) if side == REFERENCE else None,
    )
    return SimpleNamespace(
        provenance=SimpleNamespace(machine=SimpleNamespace(id=machine)), timed={"small": timing, "large": timing}
    )


def samples(best: float, reference: float) -> dict[str, Samples]:
    return {name: Samples({BEST: [best] * 4, REFERENCE: [reference] * 4}) for name in ("small", "large", "new")}


@pytest.mark.parametrize(("best", "reference"), [(1.0, 2.0), (1.2, 2.0), (3.0, 6.0), (0.2, 2.0)])
def test_its_usual_speed_beside_the_reference_passes(best, reference):
    require_accepted_speed(accepted(), samples(best, reference), MACHINE)


def test_a_version_that_slowed_down_is_no_rival():
    with pytest.raises(MachineFailed, match=r"on record: 2.0 times as long"):
        require_accepted_speed(accepted(), samples(2.0, 2.0), MACHINE)


def test_times_of_another_machine_or_none_say_nothing():
    require_accepted_speed(accepted(machine="m2"), samples(9.0, 2.0), MACHINE)
    require_accepted_speed(None, samples(9.0, 2.0), MACHINE)
    require_accepted_speed(accepted(), {"small": Samples({BEST: [9.0] * 4})}, MACHINE)


def judged(seconds: float, reference: float, **changes: object) -> SimpleNamespace:
    """The version as a candidate: its seconds, and those of the reference."""
    facts: dict[str, object] = {"machine": "m1", "verdict": Verdict.ACCEPT, "idle": True, "source": "a" * 64}
    facts |= changes
    made = accepted(seconds, reference, str(facts["machine"]))
    made.provenance.solution_sha256, made.provenance.definition_sha256 = facts["source"], "d" * 64
    made.decision = SimpleNamespace(verdict=facts["verdict"], reason="as the numbers say")
    made.trust = (Check(name=MACHINE_IDLE, ran=bool(facts["idle"]), how="1.0 cores busy"),)
    return made


def test_a_time_under_load_gives_way_to_one_of_an_idle_machine():
    assert find_retiming_fault(judged(1.2, 6.0), judged(1.0, 2.0)) == ""


@pytest.mark.parametrize(
    ("again", "fault"),
    [
        (judged(1.5, 2.0), "1.25 times the seconds"),
        (judged(1.2, 6.0), "accepted time is right"),
        (judged(0.9, 6.0), "accepted time is right"),
        (judged(1.0, 2.0, idle=False), "not idle: 1.0 cores busy"),
        (judged(1.0, 2.0, machine="m2"), "another machine"),
        (judged(1.0, 2.0, source="b" * 64), "another one"),
        (judged(1.0, 2.0, verdict=Verdict.ROLLBACK), "not accepted again"),
        (judged(1.0, 2.0, verdict=Verdict.INVALID), "the machine failed"),
    ],
)
def test_what_a_new_time_must_show_before_it_counts(again, fault):
    assert fault in find_retiming_fault(judged(1.2, 6.0), again)


def test_every_workload_is_timed_again():
    again = judged(1.0, 2.0)
    del again.timed["large"]
    assert "every workload" in find_retiming_fault(judged(1.2, 6.0), again)
