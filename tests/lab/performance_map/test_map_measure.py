"""Measurement of a map: real processes, scripted times that depend on the version and the shape."""

from __future__ import annotations

import itertools
import re

import pytest
from lab_samples import HONEST, SQUARE, kernel

from warpsmith import files
from warpsmith.errors import MachineLacks, SolutionFailed
from warpsmith.lab.machine import contention, hardware, system
from warpsmith.lab.performance_map import measure
from warpsmith.lab.performance_map.measure import MapMeasurement, MapRequest
from warpsmith.lab.performance_map.models import Confirmation, MapVersion
from warpsmith.lab.timing.session import CallTime, Session, TimedBlock
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.lab.workers.side import Side

pytestmark = pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")

WRONG_WHEN_LARGE = "for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i] + (n > 2000);"
TEXT = SQUARE.replace("workloads=(", 'workloads=(Workload(name="tiny", axes={"n": 10}), ')


@pytest.fixture
def request_of(workshop, monkeypatch):
    """`request_of(v1, v2, ...)`: a request whose versions take the times in their source, by shape."""
    monkeypatch.setattr(contention, "describe_cpu_load", lambda: None)
    budget = TimingBudget(rounds=12, most=12, seconds=0)
    monkeypatch.setattr(measure, "_FIRST", {"cpu": budget})
    monkeypatch.setattr(measure, "_SECOND", {"cpu": budget})
    scripts, load, wobble = {}, Side.load, itertools.cycle((0.99, 1.0, 1.01))

    def load_side(self, definition, code, *rest, **options):
        found = re.search(r"// (.*)", code.source.read_text())
        scripts[self.pid] = dict(pair.split("=") for pair in found[1].split())
        return load(self, definition, code, *rest, **options)

    def time_block(self, name, **_):
        self.call_side(name)
        return TimedBlock(float(scripts[self.sides[name].pid][self.workload.name]) * next(wobble), 0.0)

    monkeypatch.setattr(Side, "load", load_side)
    monkeypatch.setattr(Session, "time_block", time_block)
    monkeypatch.setattr(Session, "time_hand_over", lambda self, name: CallTime(0.0, 0.0))

    def make(*scripted, bodies=(), **changes):
        file, sources = workshop.load("square", TEXT), {}
        for number, (script, body) in enumerate(itertools.zip_longest(scripted, bodies, fillvalue=HONEST), 1):
            path = workshop.solution(f"// {script}\n{kernel(body)}", version=f"v{number}").path
            sources[f"cpp/v{number}"] = path
        versions = [MapVersion(solution=name, language="cpp", sha256=files.file_sha256(path))
                    for name, path in sources.items()]  # fmt: skip
        usual = {"page": hardware.read_target_page(workshop.project, "cpu"),
                 "measurement": workshop.measurement(floor=0.01)}  # fmt: skip
        return MapRequest(file, versions=versions, sources=sources, workloads=file.definition.workloads,
                          **{**usual, **changes})  # fmt: skip

    return make


def test_the_version_that_is_faster_at_a_shape_in_both_timings_runs_there(request_of, host):
    scripts = ("tiny=2e-4 small=2e-4 large=1e-3", "tiny=1e-4 small=1.99e-4 large=2e-3")
    measurement = MapMeasurement(request_of(*scripts))
    events = list(measurement.run(host))
    assert [workload.name for workload, event in events] == ["tiny", "small", "large", "tiny"]
    assert isinstance(events[-1][1], Confirmation)
    record = measurement.record()
    assert {cell.workload.name: cell.solution for cell in record.cells} == {
        "tiny": "cpp/v2", "small": "cpp/v1", "large": "cpp/v1",
    }  # fmt: skip
    tiny, small, large = record.cells
    assert tiny.confirmation.speedup == pytest.approx(2, rel=0.05)
    assert tiny.confirmation.correctness.calls == 12  # every timed call was graded
    assert large.time_of("cpp/v2").comparison.speedup == pytest.approx(0.5, rel=0.05)
    assert (small.confirmation, record.best, record.calls) == (None, "cpp/v1", {})
    assert record.floor == pytest.approx(0.01732, rel=1e-3)
    assert record.confidence == pytest.approx(1 - 0.05 / 3)
    assert record.machine == measurement.request.measurement.machine


def test_a_version_that_is_wrong_at_one_shape_is_used_at_none(request_of, host):
    slow = "tiny=2e-4 small=2e-4 large=2e-4"
    fast = "tiny=1e-4 small=1e-4 large=1e-4"
    record_of = MapMeasurement(request_of(slow, fast, slow, bodies=(HONEST, WRONG_WHEN_LARGE)))
    list(record_of.run(host))
    record = record_of.record()
    assert {cell.solution for cell in record.cells} == {"cpp/v1"}
    assert "INCORRECT_NUMERICAL at large" in record.versions[1].failed
    assert [version.failed for version in record.versions[::2]] == ["", ""]


def test_with_one_sound_version_there_is_no_map(request_of, host):
    slow = "tiny=2e-4 small=2e-4 large=2e-4"
    measurement = MapMeasurement(request_of(slow, slow, bodies=(HONEST, WRONG_WHEN_LARGE)))
    with pytest.raises(
        SolutionFailed, match="Fewer than two versions of square are correct at 3 shapes: cpp/v2: INCORRECT"
    ):
        list(measurement.run(host))


def test_the_other_version_is_the_best_single_one_where_it_is_shown_faster_over_all(request_of, host):
    measurement = MapMeasurement(request_of("tiny=2e-4 small=2e-4 large=2e-4", "tiny=1e-4 small=1e-4 large=3e-4"))
    list(measurement.run(host))
    record = measurement.record()
    assert (record.best, {cell.workload.name: cell.solution for cell in record.cells}["large"]) == (
        "cpp/v2",
        "cpp/v1",
    )
    assert "as fast as cpp/v1" in record.best_reason


def test_shapes_that_the_time_does_not_reach_are_named(request_of, host, monkeypatch):
    request = request_of("tiny=2e-4 small=2e-4 large=2e-4", "tiny=1e-4 small=4e-4 large=2e-4", seconds=100)
    clock = iter([1, 70, 71, 101])
    monkeypatch.setattr(MapMeasurement, "_seconds_spent", property(lambda self: next(clock)))
    measurement = MapMeasurement(request)
    list(measurement.run(host))
    record = measurement.record()
    assert [cell.workload.name for cell in record.cells] == ["tiny", "small"]
    assert {cell.solution for cell in record.cells} == {"cpp/v1"}
    assert [note.split(":")[0] for note in record.notes] == ["the time of 100 s did not reach 1 shape", "tiny"]


def test_a_language_that_cannot_be_timed_here(request_of):
    request = request_of("tiny=1", "tiny=1")
    triton = [MapVersion(solution="triton/v1", language="triton", sha256="a" * 64), *request.versions]
    with pytest.raises(MachineLacks):
        MapMeasurement(MapRequest(**{**vars(request), "versions": triton}))
