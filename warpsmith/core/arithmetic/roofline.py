"""Roofline arithmetic: the limit of a workload, the floor of its time, and the share of it that a run reached."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from warpsmith.core.base import Model, Positive
from warpsmith.core.definition import Work


class Rate(Model):
    """A peak rate with its source."""

    value: Positive
    """Bytes or operations per second."""
    origin: Literal["measured", "documented"]
    """Origin: measured on this machine, or from the hardware page."""
    source: str
    """Source: the record, or the page's `file:line`."""


class Roofline(Model):
    """A workload under the machine's two ceilings, and above its launch floor."""

    bandwidth: Rate
    """Bandwidth ceiling in bytes per second."""
    compute: Rate | None
    """Compute ceiling in operations per second of the type in
    use; null if unknown: then only bytes limit the time."""
    work: Work
    """Algorithmic work of the workload."""
    launch_seconds: float = Field(default=0.0, ge=0)
    """Launch floor of this machine in seconds; 0 if it was not measured."""

    @property
    def memory_seconds(self) -> float:
        """Time to move the bytes at the bandwidth ceiling, in seconds."""
        return self.work.bytes / self.bandwidth.value

    @property
    def compute_seconds(self) -> float:
        """Time to do the operations at the compute ceiling, in seconds; 0 if unknown."""
        return self.work.flops / self.compute.value if self.compute else 0.0

    @property
    def floor_seconds(self) -> float:
        """Least time in seconds for an implementation that does the algorithmic work."""
        return max(self.memory_seconds, self.compute_seconds, self.launch_seconds)

    @property
    def bound(self) -> Literal["memory", "compute", "launch"]:
        """Limit of the workload: a ceiling, or the launch of a call."""
        if self.launch_seconds > max(self.memory_seconds, self.compute_seconds):
            return "launch"
        return "compute" if self.compute_seconds > self.memory_seconds else "memory"

    def share(self, seconds: float) -> float:
        """Return the share of the ceiling that a run of `seconds` reached: 1 is the floor time."""
        return self.floor_seconds / seconds
