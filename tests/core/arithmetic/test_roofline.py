"""Roofline: bound, floor and share by hand-made numbers."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from warpsmith.core.arithmetic.roofline import Rate, Roofline
from warpsmith.core.definition import Work


def roofline(flops: float, compute: float | None = 1e12) -> Roofline:
    """100 GB/s and 1 TFLOP/s, 60 + 40 MB: the ridge is at 10 FLOPs a byte, memory takes 1 ms."""
    rate = Rate(value=compute, origin="documented", source="page:3") if compute else None
    bandwidth = Rate(value=100e9, origin="measured", source="record")
    return Roofline(bandwidth=bandwidth, compute=rate, work=Work(flops=flops, bytes_read=60e6, bytes_written=40e6))


def test_at_the_ridge_both_ceilings_meet():
    at_ridge = roofline(10 * 100e6)
    assert at_ridge.work.intensity == pytest.approx(10)
    assert at_ridge.compute_seconds == pytest.approx(at_ridge.memory_seconds)
    assert at_ridge.bound == "memory"


@pytest.mark.parametrize(
    ("flops", "bound", "floor"), [(0, "memory", 1e-3), (0.9e9, "memory", 1e-3), (4e9, "compute", 4e-3)]
)
def test_the_floor_is_the_longer_of_both_times(flops: float, bound: str, floor: float):
    found = roofline(flops)
    assert found.memory_seconds == pytest.approx(1e-3)
    assert found.compute_seconds == pytest.approx(flops / 1e12)
    assert (found.bound, found.floor_seconds) == (bound, pytest.approx(floor))


def test_without_a_compute_figure_bytes_alone_bound():
    found = roofline(1e15, compute=None)
    assert (found.compute_seconds, found.bound) == (0.0, "memory")
    assert found.floor_seconds == pytest.approx(1e-3)


@pytest.mark.parametrize(
    ("launch", "bound", "floor"), [(0.9e-3, "memory", 1e-3), (1e-3, "memory", 1e-3), (2e-3, "launch", 2e-3)]
)
def test_no_workload_is_held_to_less_than_a_launch(launch: float, bound: str, floor: float):
    held = roofline(0).model_copy(update={"launch_seconds": launch})
    assert (held.bound, held.floor_seconds) == (bound, pytest.approx(floor))
    assert held.share(2e-3) == pytest.approx(floor / 2e-3)


def test_a_share_is_of_the_ceiling():
    found = roofline(0)
    assert found.share(found.floor_seconds) == 1
    assert found.share(2e-3) == pytest.approx(0.5)


@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan")])
def test_a_rate_is_finite_and_above_zero(value: float):
    with pytest.raises(ValidationError):
        Rate(value=value, origin="measured", source="record")
