"""Lines of `warpsmith try`."""

from __future__ import annotations

import pytest

from warpsmith.lab.tuning.workbench import VariantResult
from warpsmith.reporting.variants import VariantLines

FLOORS = {"small": 4e-6, "large": 60e-6, "unknown": None}


@pytest.mark.parametrize(
    ("seconds", "names"),
    [
        ({"small": 4.5e-6, "large": 70e-6, "unknown": 1e-9}, ""),
        ({"small": 3.9e-6, "large": 50e-6}, ""),  # caches and clocks
        ({"small": 4.5e-6, "large": 9e-6}, "large"),
        ({"small": 1e-6, "large": 9e-6}, "small, large"),
        ({}, ""),
    ],
)
def test_times_far_below_the_floor_are_named(seconds, names):
    result = VariantResult(variant="v1.py", state="timed", seconds=seconds)
    line = VariantLines(["v1.py"], FLOORS, "the reference").below_floor_line(result)
    assert line.partition(";")[0] == (f"far below the floor: {names}" if names else "")
