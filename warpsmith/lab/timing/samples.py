"""Samples: the times, grades and readings of one workload."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.machine.telemetry import GpuReading
from warpsmith.lab.timing import statistics
from warpsmith.lab.timing.answers import TimedBlock
from warpsmith.lab.timing.session import SOLUTION


class Replays(NamedTuple):
    """The solution's captured block, replayed without a pause."""

    times: int
    """Replays in one run."""
    unseen: float
    """Seconds that the grader's clock saw beyond the events in the least disturbed run, less the delay of a host
    that became slower."""


@dataclass
class Samples:
    """Paired times of one workload: the sides had the same inputs at the same position."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Side to seconds per call."""
    blocks: dict[str, list[TimedBlock]] = field(default_factory=lambda: defaultdict(list))
    """Side to its blocks, including those that were run only for the clock check."""
    replays: Replays | None = None
    """Replays for the clock check; None where single blocks were conclusive."""
    grades: list[Grade] = field(default_factory=list)
    """Grades of the solution's timed calls."""
    joules: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Side to joules per call, where energy decides."""
    readings: list[GpuReading] = field(default_factory=list)
    """State of the GPU around the blocks."""
    eager: dict[str, str] = field(default_factory=dict)
    """Side to the reason why its block could not be captured; if there is any, all sides are launched call by
    call."""
    slots: int = 1
    """Calls in a block."""
    cold: bool = True
    """True if the tensors of a block are at least twice the L2 cache."""
    dropped: int = 0
    """Rounds left out because the clock was low."""

    def clock_ratios(self) -> dict[str, float]:
        """Return side to the seconds of its least disturbed block by the grader's clock, as a multiple of the
        events'."""
        return {
            side: min(1 + block.unseen / (block.seconds * self.slots) for block in blocks)
            for side, blocks in self.blocks.items()
            if blocks
        }

    @property
    def block_seconds(self) -> float:
        """Median seconds of a block of the solution, by the events."""
        return statistics.median(self.seconds[SOLUTION]) * self.slots
