"""The classifier on versions of softmax: counters that an H200 gave in float32, at 8192x8192 and 512x131072."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.core.profile import Profile
from warpsmith.profiling.counters import Counters
from warpsmith.profiling.diagnosis import from_counters as counters

KEPT = Path(__file__).parents[2] / "data" / "ncu"
BYTES = 2 * 8192 * 8192 * 4  # 512 rows of 131072 move as much


def explained(version: str) -> Profile:
    counted = Counters.model_validate_json((KEPT / f"softmax-{version}.json").read_bytes())
    return counters.profile_from_counters(
        counted,
        version=version,
        language="triton",
        sha256=counted.sha256,
        algorithmic_bytes=BYTES,
        asks_for_tensor_cores=False,
    )


def test_the_best_version_is_at_the_limit_and_nothing_else_is_said_of_it():
    found = explained("v7")
    assert found.bottleneck == "at-the-limit"
    assert found.opportunities == ()
    assert found.value("traffic_amplification") == pytest.approx(1, abs=0.05)


def test_the_first_version_moves_more_than_it_must():
    found = explained("v1")
    assert found.bottleneck == "memory"
    first = found.opportunities[0]
    assert first.trigger.name == "traffic_amplification"
    assert first.trigger.value == pytest.approx(1.375, abs=0.01)


def test_where_the_best_version_falls_short_registers_and_barriers_are_named():
    found = explained("v7-long")
    assert found.bottleneck == "latency"
    assert [opportunity.entry for opportunity in found.opportunities] == [
        "occupancy-by-resource-budget",
        "excess-synchronization",
    ]
    assert found.root_cause.startswith("Registers limit the occupancy")
