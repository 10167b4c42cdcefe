"""Roofline arithmetic: what bounds a workload, the floor of its time, and a run's share of that."""

from __future__ import annotations

from typing import Literal

from warpsmith.core.base import Model, Positive
from warpsmith.core.definition import Work


class Rate(Model):
    """A peak with where it comes from."""

    value: Positive
    """Bytes or operations a second."""
    origin: Literal["measured", "documented"]
    """Measured on this machine, or from the hardware page."""
    source: str
    """The record, or the page's `file:line`."""


class Roofline(Model):
    """Where a workload stands under the machine's two ceilings."""

    bandwidth: Rate
    """Bytes a second."""
    compute: Rate | None
    """Operations a second of the type in use; null where unknown: then time is bounded by bytes alone."""
    work: Work
    """The workload's algorithmic work."""

    @property
    def memory_seconds(self) -> float:
        """Time to move the bytes at the bandwidth ceiling."""
        return self.work.bytes / self.bandwidth.value

    @property
    def compute_seconds(self) -> float:
        """Time to do the operations at the compute ceiling; 0 where unknown."""
        return self.work.flops / self.compute.value if self.compute else 0.0

    @property
    def floor_seconds(self) -> float:
        """No implementation that does the algorithmic work runs much faster."""
        return max(self.memory_seconds, self.compute_seconds)

    @property
    def bound(self) -> Literal["memory", "compute"]:
        """Which ceiling the workload is under."""
        return "compute" if self.compute_seconds > self.memory_seconds else "memory"

    def share(self, seconds: float) -> float:
        """The share of the ceiling that a run of `seconds` reached: 1 is the floor time."""
        return self.floor_seconds / seconds
