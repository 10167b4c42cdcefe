"""What a symptom is, and the counted facts of one kernel that its rule looks at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from warpsmith.core.profile import Bottleneck

DRAM_CEILING = 88.0
"""Percent of the DRAM's peak that a copy reaches: 4,242 of 4,815 GB/s on an H200."""

STALLED = 30.0
"""Percent of warp cycles from which ncu's own rules call a stall high."""

ISSUING = 80.0
"""Percent of cycles with an instruction from which ncu takes no stall for a problem."""

LATENCY = 60.0
"""Percent of a unit's peak below which ncu speaks of latency."""

SATURATED = 80.0
"""Percent of a unit's peak from which ncu calls it the bottleneck."""


@dataclass(frozen=True)
class Facts:
    """What was counted of one kernel, and what its caller knows of the operator."""

    values: Mapping[str, float]
    """Values by name of `warpsmith.core.metrics.METRICS`."""
    dram_ceiling_pct: float = DRAM_CEILING
    """Percent of the DRAM's peak that the device reaches at best."""
    asks_for_tensor_cores: bool | None = None
    """Whether the operator's arithmetic belongs on tensor cores; None where nobody said."""
    float64: bool = False
    """Whether the operator's own types are float64."""

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    def get(self, name: str, default: float = 0.0) -> float:
        """A value that a rule can do without."""
        return self.values.get(name, default)

    def lacks(self, needs: tuple[str, ...]) -> tuple[str, ...]:
        """Those of `needs` that nobody measured or said."""
        said = {"asks_for_tensor_cores"} if self.asks_for_tensor_cores is not None else set()
        return tuple(name for name in needs if name not in self.values and name not in said)

    @property
    def dram(self) -> float:
        """DRAM traffic over what the device reaches at best, 0 to 1."""
        return min(1.0, self["dram_busy_pct"] / self.dram_ceiling_pct)

    @property
    def room(self) -> float:
        """Share of the time in which neither the DRAM nor a pipe of the multiprocessors was busy."""
        return max(0.0, 1 - max(self.dram, self["sm_busy_pct"] / 100))

    @property
    def idle(self) -> bool:
        """Whether neither the DRAM nor the multiprocessors are near their limit, so that waiting costs time."""
        return self.dram < SATURATED / 100 and self["sm_busy_pct"] < LATENCY

    def waits(self, stall: str) -> bool:
        """Whether warps wait for one reason, in a kernel that is slow because of it."""
        return self[stall] >= STALLED and self["issue_active_pct"] < ISSUING and self.idle


BUSY = ("dram_busy_pct", "sm_busy_pct")
"""What `Facts.room` and `Facts.idle` need."""

WAITS = ("issue_active_pct", *BUSY)
"""What `Facts.waits` needs beside the stall."""


class Symptom(NamedTuple):
    """One rule: what it looks at, when it holds, and what follows."""

    id: str
    """The stem of its page in docs/knowledge/symptoms/."""
    title: str
    """What is wrong, in a few words."""
    bottleneck: Bottleneck
    """The class that it stands for."""
    metric: str
    """The trigger."""
    threshold: float
    """What the trigger is compared with; its page says why."""
    needs: tuple[str, ...]
    """Facts that the rule cannot do without, beside the trigger."""
    holds: Callable[[Facts], bool]
    """Whether the facts call for it."""
    saves: Callable[[Facts], float]
    """Share of the kernel's time that the cure could save at most, 0 to 1."""
    entry: str
    """The knowledge entry that says what to do."""
    action: str
    """What to do, in one line."""
    mechanism: str
    """Why it costs time, in one sentence."""
    explains: tuple[str, ...] = ()
    """Symptoms that follow from this one."""
    conclusive: bool = False
    """Whether nothing else matters beside it."""
