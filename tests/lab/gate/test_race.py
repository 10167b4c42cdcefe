"""Paired timing over several workloads, with scripted batches of rounds."""

from __future__ import annotations

import pytest
from lab_samples import SQUARE

from warpsmith.core import gate_rules
from warpsmith.core.campaign import Thresholds
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import BEST, REFERENCE, Verdict
from warpsmith.core.hardware import LaunchFloor
from warpsmith.lab.gate.paired_timing import PairedTiming
from warpsmith.lab.machine import hardware
from warpsmith.lab.machine.telemetry import GpuReading
from warpsmith.lab.timing import energy, timing
from warpsmith.lab.timing.answers import TimedBlock
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.timing.timing import TimingBudget

WORKLOADS = (Workload(name="small", axes={}), Workload(name="large", axes={}))


@pytest.fixture
def run(monkeypatch):
    """`run(small=..., large=...)`: a timing after one batch, with each side's seconds per call by workload."""
    seconds: dict[str, dict[str, float]] = {}

    def batch(session, samples, budget, gauge):
        for side, value in seconds[session].items():
            samples.seconds[side] += [value * wobble for wobble in (0.999, 1.0, 1.001, 1.0)]

    monkeypatch.setattr(timing, "time_rounds", batch)

    def make(workloads=WORKLOADS, **by_workload):
        seconds.update(by_workload)
        one = PairedTiming(workloads, TimingBudget(), None)
        for workload in workloads:
            one.time_workload(workload, lambda workload: workload.name)
        return one

    return make


BOTH = {SOLUTION: 1.0, BEST: 2.0, REFERENCE: 4.0}


def test_batches_add_up(run):
    one = run(small=BOTH, large=BOTH)
    one.time_workload(WORKLOADS[0], lambda workload: workload.name)
    assert {name: len(samples.seconds[SOLUTION]) for name, samples in one.samples.items()} == {
        "small": 8,
        "large": 4,
    }


def test_aggregates_are_over_the_workloads_for_each_other_side(run):
    one = run(small=BOTH, large={SOLUTION: 1.0, BEST: 0.5, REFERENCE: 1.0})
    found = {aggregate.against: aggregate for aggregate in one.aggregates()}
    assert set(found) == {BEST, REFERENCE}
    assert found[BEST].speedup == pytest.approx(1.0)
    assert (found[BEST].worst_workload, found[BEST].worst) == ("large", pytest.approx(0.5))
    assert found[REFERENCE].speedup == pytest.approx(2.0)


def test_captured_calls_weigh_by_their_time(run, workshop):
    small, large = WORKLOADS
    captured = [small.model_copy(update={"weight": 700}), large.model_copy(update={"weight": 100})]
    sides = {"small": {SOLUTION: 1.0, BEST: 1.0}, "large": {SOLUTION: 2.0, BEST: 3.0}}
    mean = run(captured, **sides).aggregates()[0]
    assert mean.shares == pytest.approx({"small": 0.7, "large": 0.3})
    assert mean.speedup == pytest.approx(1.5**0.3)
    assert (mean.interval.low, mean.interval.high) == pytest.approx((mean.speedup, mean.speedup), rel=0.01)
    half = run([captured[0], large], **sides).aggregates()[0]
    assert (half.shares, half.speedup) == ({}, pytest.approx(1.5**0.5))  # nobody counted the calls of the other
    rare = run([captured[0], large.model_copy(update={"weight": 1})], **sides)
    verdict = rare.provisional_decision(workshop.measurement(), Thresholds(), 0)
    assert verdict.decision.verdict is Verdict.ROLLBACK
    assert "raised for the unequal weights of the workloads" in verdict.decision.reason
    assert verdict.floor == pytest.approx(workshop.measurement().noise.floor * 3**0.5, rel=0.01)


def test_a_baseline_is_settled(run, workshop):
    sides = {SOLUTION: 1.0, REFERENCE: 4.0}
    provisional = run(small=sides, large=sides).provisional_decision(workshop.measurement(), Thresholds(), 0)
    assert (provisional.settled, provisional.decision.verdict, provisional.decision.against) == (
        True,
        Verdict.ACCEPT,
        None,
    )


def test_a_gain_is_held_to_the_machines_floor(run, workshop):
    sides = {SOLUTION: 1.0, BEST: 1.04, REFERENCE: 4.0}
    one = run(small=sides, large=sides)
    verdicts = [
        one.provisional_decision(workshop.measurement(floor=floor), Thresholds(), 0).decision.verdict
        for floor in (0.01, 0.05)
    ]
    assert verdicts == [Verdict.ACCEPT, Verdict.ROLLBACK]


def test_what_was_weighed_decides(run, workshop, monkeypatch):
    def read(session, samples, gauge):
        assert (session, gauge) == ("large", "the gauge")
        for side, value in {SOLUTION: 1.0, BEST: 1.3}.items():
            samples.joules[side] += [value] * 6

    monkeypatch.setattr(energy, "read_energy", read)
    one = run(small={SOLUTION: 1.0, BEST: 1.0}, large={SOLUTION: 1.0, BEST: 1.0})
    timed = one.provisional_decision(workshop.measurement(floor=0.01), Thresholds(), 0)
    assert (one.energy(), timed.decision.verdict) == (None, Verdict.ROLLBACK)
    one._gauge = "the gauge"
    one.read_energy(WORKLOADS[1], lambda workload: workload.name)
    found = one.provisional_decision(workshop.measurement(floor=0.01), Thresholds(), 0)
    assert (found.decision.verdict, found.floor) == (Verdict.ACCEPT, 0.002)
    assert one.energy().aggregate == found.aggregate
    assert list(one.energy().workloads) == ["large"]


@pytest.mark.parametrize("repeats", [0, 1])
def test_a_race_goes_on_until_it_is_settled(run, workshop, repeats):
    sides = {SOLUTION: 1.0, BEST: 1.015}  # small gains are timed twice
    one, told = run(small=sides, large=sides), []
    one.samples.clear()
    provisional = one.settle(
        lambda workload: one.time_workload(workload, lambda workload: workload.name),
        workshop.measurement(floor=0.01), Thresholds(), repeats, told.append,
    )  # fmt: skip
    assert (provisional.settled, provisional.decision.verdict, provisional.decision.repeats) == (
        True,
        Verdict.ACCEPT,
        1,
    )
    batches = 2 - repeats
    assert [len(samples.seconds[SOLUTION]) for samples in one.samples.values()] == [4 * batches] * 2
    assert told == ["timing: repeat 1 of 3"] * (batches - 1)


def test_a_workload_that_got_slower_decides(run, workshop):
    one = run(small={SOLUTION: 1.0, BEST: 2.0}, large={SOLUTION: 1.0, BEST: 0.9})
    provisional = one.provisional_decision(workshop.measurement(floor=0.01), Thresholds(), 0)
    assert provisional.decision.verdict is Verdict.ROLLBACK
    assert "large -10.0%" in provisional.decision.reason


def test_without_a_measured_floor_one_is_assumed_and_said(run, workshop):
    unmeasured = workshop.measurement().model_copy(update={"noise": None})
    little, more = 1 + gate_rules.FALLBACK_FLOOR * 0.9, 1 + gate_rules.FALLBACK_FLOOR * 1.5
    for speedup, verdict in ((little, Verdict.ROLLBACK), (more, Verdict.ACCEPT)):
        sides = {SOLUTION: 1.0, BEST: speedup}
        one = run(small=sides, large=sides)
        assert one.provisional_decision(unmeasured, Thresholds(), 1).decision.verdict is verdict
    assert one.notes(unmeasured) == ["no A/A floor was measured on this machine; 2% assumed"]


def test_what_a_reader_of_the_times_must_know(run, workshop):
    one = run(small=BOTH, large=BOTH)
    assert one.notes(workshop.measurement()) == []
    one.samples["small"].eager = {BEST: "it waits for the device"}
    one.samples["small"].cold = False
    one.samples["large"].readings = [GpuReading(1980, 3201, 60, 690.0, ("thermal", "power cap"))]
    one.samples["large"].blocks[REFERENCE] = [TimedBlock(1e-3, 1e-3)]
    eager, *others = one.notes(workshop.measurement())
    assert eager.startswith("small: best is no CUDA graph (it waits for the device):")
    assert others == [
        "small: its tensors fit the L2 cache: timed warm",
        "large: the GPU held its clocks down: power cap, thermal",
        "large: reference takes 2.0 times as long by wall clock",
    ]


def test_times_stand_against_the_roofline(workshop, run):
    one = run(small=BOTH, large=BOTH)
    file = workshop.load("square", SQUARE)
    one.workloads = file.definition.workloads
    page = hardware.read_target_page(workshop.project, "cpu")
    found = one.timings(workshop.project, page, workshop.measurement(), file, "cpu")
    assert set(found) == {"small", "large"}
    assert found["small"].against(REFERENCE).speedup == pytest.approx(4.0)
    assert found["small"].clock == "parent"
    assert found["large"].floor_seconds > found["small"].floor_seconds
    floors = {"parent": LaunchFloor(seconds=0.5, spread=0, samples=1)}
    launched = workshop.measurement().model_copy(update={"launch": floors})
    held = one.timings(workshop.project, page, launched, file, "cpu")["small"]
    assert (held.floor_seconds, held.ceiling_share) == (0.5, pytest.approx(0.5 / held.seconds))
