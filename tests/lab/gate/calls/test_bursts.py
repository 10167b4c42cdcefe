"""Bursts of calls in processes with the system's settings: a gain of single calls alone shows there."""

from __future__ import annotations

import pytest
from lab_samples import SQUARE, kernel

from warpsmith import languages
from warpsmith.core import gate_rules
from warpsmith.core.evaluation import BEST, Status
from warpsmith.lab.gate.calls.bursts import check_bursts
from warpsmith.lab.machine import system
from warpsmith.lab.timing.arenas import allocate_arenas
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.timing.sides import Sides, SideSource
from warpsmith.lab.workers.side import Limits, SideFailed

pytestmark = pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")

WAIT = """#include <chrono>
static void wait(int microseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
  while (std::chrono::steady_clock::now() < end) {}
}"""
SQUARES = "for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];"


@pytest.fixture
def check(host, workshop, tmp_path, monkeypatch):
    """`check(bodies, gain)`: the check of a C++ version of the square against one that takes 300 us."""
    monkeypatch.setattr(gate_rules, "BURST_SECONDS", 0.2)

    def run(body, gain):
        file = workshop.load("square", SQUARE)
        sources = {}
        for name, text in ((SOLUTION, body), (BEST, f"wait(300); {SQUARES}")):
            path = workshop.solution(kernel(text, WAIT)).path
            sources[name] = SideSource(
                languages.get("cpp").build(path, file.definition, tmp_path / name), "cpp", Limits(seconds=30)
            )
        workloads = file.definition.workloads
        arenas = allocate_arenas(file, workloads, [], (SOLUTION, BEST), "cpu")
        try:
            return check_bursts(file, host, Sides(file, host, arenas, sources, "cpu"), workloads, gain)
        finally:
            arenas.close()

    return run


def test_a_gain_of_all_calls_passes(check):
    result = check(f"wait(60); {SQUARES}", 4.0)
    assert result.ran
    assert "5 pairs at" in result.how


@pytest.mark.parametrize(
    "slow",
    [
        "last + std::chrono::milliseconds(50) > now",
        '!std::getenv("MALLOC_MMAP_MAX_")',
        'std::getenv("GOMP_SPINCOUNT")',
    ],
    ids=["calls that follow each other", "the system's allocator", "the system's threads"],
)
def test_a_gain_of_timed_calls_alone_is_refused(check, slow):
    body = f"""using Clock = std::chrono::steady_clock;
      static Clock::time_point last; const auto now = Clock::now();
      wait({slow} ? 400 : 60); {SQUARES} last = Clock::now();"""
    with pytest.raises(SideFailed, match="in bursts at") as caught:
        check(body, 4.0)
    assert caught.value.status is Status.IMPLAUSIBLE_TIME
