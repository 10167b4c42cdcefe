"""A profile from timings: the class of what limits, the stage table and one root cause."""

from __future__ import annotations

from typing import Any

import pytest

from warpsmith.core.metrics import METRICS
from warpsmith.core.profile import Observations, Profile
from warpsmith.profiling.diagnosis import from_timings as timings


def point(name: str = "large", seconds: float = 1.0, memory: float = 0.6, compute: float = 0.0, size: float = 1e9):
    return {
        "workload": name, "seconds": seconds, "floor_seconds": max(memory, compute, 1e-12),
        "memory_seconds": memory, "compute_seconds": compute, "bytes": size,
    }  # fmt: skip


def seen(*points: dict[str, Any], **changes: Any) -> Observations:
    data = {
        "version": "v3", "language": "triton", "solution_sha256": "a" * 64, "kind": "gpu",
        "points": points or (point(),), "cores": 8, "measured": "2026-11-21 10:00",
    }  # fmt: skip
    return Observations.model_validate(data | changes)


def summary(*points: dict[str, Any], **changes: Any) -> Profile:
    return timings.profile_from_timings(seen(*points, **changes))


@pytest.mark.parametrize(
    ("points", "changes", "expected"),
    [
        ([point(memory=0.90)], {}, "at-the-limit"),
        ([point(memory=0.3, compute=0.95)], {}, "at-the-limit"),
        ([point(memory=0.89)], {}, "memory"),
        ([point(memory=0.55)], {}, "memory"),
        ([point(memory=0.54)], {}, "latency"),
        ([point(memory=0.3, compute=0.7)], {}, "compute"),
        ([point(memory=0.7, compute=0.6)], {}, "memory"),
        ([point(memory=0.3, compute=0.5)], {}, "latency"),
        ([point(memory=0.3)], {"host_seconds": 1.1}, "launch"),
        ([point(memory=0.95)], {"host_seconds": 1.1}, "at-the-limit"),
        ([point(memory=0.3)], {"host_seconds": 0.9}, "latency"),
    ],
)
def test_what_limits_is_classed(points: list[dict[str, Any]], changes: dict[str, Any], expected: str):
    assert summary(*points, **changes).bottleneck == expected


def test_many_small_workloads_do_not_speak_for_all():
    small = [point(f"small-{k}", seconds=1e-4, memory=1e-6, size=1e3) for k in range(20)]
    found = summary(point(seconds=1.0, memory=0.95), *small)
    assert found.bottleneck == "at-the-limit"
    assert found.value("ceiling_pct") == pytest.approx(94.8, abs=0.1)
    assert found.value("worst_ceiling_pct") == pytest.approx(1)
    assert found.value("small_ceiling_pct") == pytest.approx(1)


def test_one_fast_small_workload_does_not_hide_a_slow_large_one():
    found = summary(point(seconds=1.0, memory=0.2), point("small", seconds=1e-4, memory=0.99e-4, size=1e3))
    assert found.bottleneck == "latency"
    assert found.value("small_ceiling_pct") == pytest.approx(99)


def test_the_stage_table_has_every_workload_the_slowest_first():
    found = summary(
        point("a", seconds=0.1, memory=0.095, size=10),
        point("b", seconds=1.0),
        point("c", seconds=0.5, memory=0.1),
    )
    assert [stage.name for stage in found.stages] == ["b", "c", "a"]
    assert [stage.bottleneck for stage in found.stages] == ["memory", "latency", "at-the-limit"]
    assert [stage.dram_pct for stage in found.stages] == [60, 20, 95]
    assert found.stages[0].issue == "60 % of the ceiling"


def test_a_workload_shorter_than_its_call_is_launch_bound():
    tiny = point("tiny", seconds=2e-6, memory=1e-6, size=10)
    found = summary(point(), tiny, host_seconds=9e-6)
    assert [stage.bottleneck for stage in found.stages] == ["memory", "launch"]
    assert found.stages[1].issue == "50 % of the ceiling; the host takes 9 us a call"
    assert found.value("host_overhead_us") == pytest.approx(9)
    assert "cuda-graphs-for-launch-bound" in [one.entry for one in found.opportunities]


CASES = {
    "at-the-limit": {"points": [point("w" * 60, memory=0.95)]},
    "memory": {"points": [point("w" * 60, memory=0.6)]},
    "compute": {"points": [point("w" * 60, memory=0.1, compute=0.8)]},
    "launch": {"points": [point("w" * 60, memory=0.3)], "host_seconds": 2.0},
    "latency": {"points": [point("w" * 60, memory=0.3)], "one_thread_seconds": 1.2, "kind": "cpu"},
}


@pytest.mark.parametrize("bottleneck", CASES)
def test_the_root_cause_is_two_sentences_at_most(bottleneck: str):
    found = timings.profile_from_timings(seen(**CASES[bottleneck]))
    assert found.bottleneck == bottleneck
    assert 40 < len(found.root_cause) <= 400
    assert found.root_cause.endswith(".")
    assert found.root_cause.count(". ") <= 1
    assert "w" * 60 in found.root_cause


def test_scaling_is_a_value_and_no_cause_by_itself():
    found = timings.profile_from_timings(seen(**CASES["latency"]))
    assert found.value("thread_scaling") == pytest.approx(1.2)
    assert "work waits on itself" in found.root_cause
    assert found.opportunities == (), "nothing is known of the code"


def test_metrics_are_of_the_vocabulary_and_only_what_was_seen():
    plain = {metric.name for metric in summary().metrics}
    assert plain <= set(METRICS)
    assert not plain & {"size_slope", "thread_scaling", "host_overhead_us", "compute_pct", "spill_bytes"}
    assert summary(point(compute=0.2)).value("compute_pct") == pytest.approx(20)
    assert summary(point(compute=0.2), point("b")).value("compute_pct") is None


def test_the_size_slope_compares_the_ends_of_the_sweep():
    sweep = [point(seconds=1.0, size=1000), point(seconds=0.7, size=500), point(seconds=0.5, size=250)]
    assert summary(sweep=sweep).value("size_slope") == pytest.approx(0.5)
    assert summary(sweep=sweep[:1]).value("size_slope") is None


def test_the_worst_kernel_of_the_compilers_report_counts():
    resources = [
        {"kernel": "a", "registers": 40, "spill_bytes": 0},
        {"kernel": "b", "registers": 128, "spill_bytes": 8},
        {"kernel": "c"},
    ]
    found = summary(resources=resources)
    assert (found.value("registers_per_thread"), found.value("spill_bytes")) == (128, 8)
    assert found.value("shared_bytes") is None
    assert "register-spills" in [one.entry for one in found.opportunities]


@pytest.mark.parametrize(("kind", "word"), [("gpu", "occupancy"), ("cpu", "cache misses")])
def test_it_says_what_it_rests_on_and_what_it_lacks(kind: str, word: str):
    found = summary(kind=kind)
    assert found.evidence == "timings"
    assert word in found.without
    assert len(found.opportunities) <= 3
    assert Profile.model_validate_json(found.model_dump_json()) == found
