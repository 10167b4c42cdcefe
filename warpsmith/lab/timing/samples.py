"""Samples: what was timed at one workload."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.machine.telemetry import Reading
from warpsmith.lab.timing import statistics
from warpsmith.lab.timing.session import SOLUTION, Block


class Replays(NamedTuple):
    """The solution's captured block, replayed without a pause."""

    times: int
    """Replays at once."""
    unseen: float
    """Seconds that the grader's clock saw beyond the events, in the least disturbed run, without what a host that
    became slower adds."""


@dataclass
class Samples:
    """Paired times of one workload: position by position the sides had the same inputs."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Side to times of a call."""
    blocks: dict[str, list[Block]] = field(default_factory=lambda: defaultdict(list))
    """Side to its blocks, those that were run for the clocks alone among them."""
    replays: Replays | None = None
    """Where single blocks do not tell well enough what the clocks hide from each other."""
    grades: list[Grade] = field(default_factory=list)
    """Grades of the solution's timed calls."""
    joules: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Side to readings of a call's energy, where that decides."""
    readings: list[Reading] = field(default_factory=list)
    """The GPU's state around the blocks."""
    eager: dict[str, str] = field(default_factory=dict)
    """Side to why its block could not be captured; then all sides are launched call by call."""
    slots: int = 1
    """Calls in a block."""
    cold: bool = True
    """Whether a block's tensors are at least twice the L2 cache."""
    dropped: int = 0
    """Rounds left out because the clock was low."""

    @property
    def block_seconds(self) -> float:
        """A block of the solution by the events."""
        return statistics.median(self.seconds[SOLUTION]) * self.slots
