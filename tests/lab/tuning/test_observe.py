from __future__ import annotations

import pytest
from lab_samples import SQUARE

from warpsmith.core import gate_rules
from warpsmith.core.hardware import Noise
from warpsmith.core.profile import Profile
from warpsmith.errors import CorruptRecord, SolutionFailed
from warpsmith.lab.calibration import ceiling, measurement, noise
from warpsmith.lab.machine import contention, measurement_store, provenance
from warpsmith.lab.machine.hardware import read_target_page
from warpsmith.lab.tuning.observe import observe_version
from warpsmith.profiling.diagnosis import from_timings as timings

pytestmark = pytest.mark.usefixtures("forked_workers")

KERNEL = """
#include <warpsmith.hpp>
extern "C" void run(const Tensor& x, Tensor& y) {
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t i = 0; i < x.size(0); ++i) out[i] = in[i] * in[i];
}
"""


@pytest.fixture
def load(monkeypatch):
    """A list whose last item is what the machine's other processes are said to do; None: nothing."""
    said: list[str | None] = [None]
    monkeypatch.setattr(contention, "describe_cpu_load", lambda: said[-1])
    return said


def test_a_version_is_observed_and_explained(workshop, load):
    file = workshop.load("square", SQUARE)
    seen = observe_version(workshop.request(file, workshop.solution(KERNEL)))
    assert [point.workload for point in seen.points] == ["small", "large"]
    assert [point.bytes for point in seen.sweep] == [40000, 10000, 2496]  # the whole, a quarter, a sixteenth
    assert seen.one_thread_seconds is not None
    assert seen.host_seconds is None
    assert seen.resources[0].vectorized_loops == 1
    summary = timings.profile_from_timings(seen)
    assert isinstance(summary, Profile)
    assert summary.value("vectorized_loops") == 1
    assert summary.value("thread_scaling") == pytest.approx(
        seen.one_thread_seconds / seen.largest.seconds, abs=1e-3
    )


def test_a_busy_machine_is_named_and_its_scaling_left_out(workshop, load):
    load.append("other processes keep 1.9 cores busy")
    file = workshop.load("square", SQUARE)
    seen = observe_version(workshop.request(file, workshop.solution(KERNEL)))
    assert (seen.load, seen.one_thread_seconds) == ("other processes keep 1.9 cores busy", None)


def test_a_version_that_crashes_cannot_be_observed(workshop):
    file = workshop.load("square", SQUARE)
    crashing = KERNEL.replace("for (int64_t", "__builtin_trap(); for (int64_t")
    with pytest.raises(SolutionFailed, match=r"v1 cannot be observed: .* killed by SIG(ILL|TRAP)"):
        observe_version(workshop.request(file, workshop.solution(crashing)))


def test_noise_is_what_comparing_an_operator_with_itself_shows(workshop, monkeypatch):
    path = workshop.define("square", SQUARE)
    monkeypatch.setattr(noise, "_DEFINITION", path)
    monkeypatch.setattr(gate_rules, "NOISE_SIZES", {"cpu": ("small", "large")})
    told = []
    found = noise.measure_noise(read_target_page(workshop.project, "cpu").target, told.append, trials=2)
    assert told == ["A/A comparison 1 of 2", "A/A comparison 2 of 2", "A/A floor measured"]
    assert found.trials == 2
    assert found.floor >= gate_rules.MIN_FLOOR
    assert "small, large" in found.how


def test_a_machine_is_measured_once(workshop, monkeypatch):
    target = read_target_page(workshop.project, "cpu").target
    made_up = workshop.measurement()
    monkeypatch.setattr(ceiling, "measure_ceilings", lambda _: dict(made_up.ceilings))
    monkeypatch.setattr(noise, "measure_noise", lambda *_: Noise(floor=0.03, trials=2, how="made up"))
    first = measurement.record_measurement(workshop.project, target)
    assert first.noise.floor == 0.03
    monkeypatch.setattr(ceiling, "measure_ceilings", lambda _: pytest.fail("measured again"))
    assert measurement.ensure_measurement(workshop.project, target) == first
    path = measurement_store.measurement_path(workshop.project, first.machine)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(CorruptRecord, match=path.name):
        measurement.ensure_measurement(workshop.project, target)
    assert path.stat().st_size == 40


def test_the_lab_is_hashed_with_everything_that_judges(monkeypatch, tmp_path):
    provenance.lab_sha256.cache_clear()
    before = provenance.lab_sha256()
    extra = tmp_path / "lab"
    extra.mkdir()
    (extra / "new_rule.py").write_text("STRICT = True\n")
    monkeypatch.setattr(provenance.lab, "__path__", [str(extra)])
    provenance.lab_sha256.cache_clear()
    assert provenance.lab_sha256() != before
    provenance.lab_sha256.cache_clear()
