"""Samples: what the grader's clock shows beside the events."""

from __future__ import annotations

import pytest

from warpsmith.lab.timing.answers import TimedBlock
from warpsmith.lab.timing.samples import Samples


def test_the_least_disturbed_block_says_how_far_the_clocks_are_apart():
    samples = Samples(slots=4)
    samples.blocks["best"] = [TimedBlock(1e-3, 1e-3), TimedBlock(1e-3, 4e-3)]
    samples.blocks["peer"] = [TimedBlock(1e-3, 8e-3)]
    samples.blocks["idle"] = []
    assert samples.clock_ratios() == pytest.approx({"best": 1.25, "peer": 3.0})
