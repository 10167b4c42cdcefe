"""Symptoms, and the measured facts of one kernel that their rules read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from warpsmith.core.profile import Bottleneck

DRAM_CEILING = 88.0
"""Percent of the DRAM's peak bandwidth that a copy reaches: 4,242 of 4,815 GB/s on an H200."""

STALLED = 30.0
"""Percent of warp cycles above which ncu's own rules report a stall."""

ISSUING = 80.0
"""Percent of cycles that issue an instruction; above it, ncu reports no stall."""

LOW_USE = 60.0
"""Percent of a unit's peak below which ncu calls the kernel latency-bound."""

SATURATED = 80.0
"""Percent of a unit's peak at which ncu calls the unit the bottleneck."""


@dataclass(frozen=True)
class Facts:
    """Measured values of one kernel, and what the caller knows about the operator."""

    values: Mapping[str, float]
    """Value by metric name; the names are those of `warpsmith.core.metrics.METRICS`."""
    dram_ceiling_pct: float = DRAM_CEILING
    """Highest percent of the DRAM's peak that the device reaches."""
    asks_for_tensor_cores: bool | None = None
    """True if the operator's arithmetic belongs on tensor cores; None if unknown."""
    float64: bool = False
    """True if the operator's own types are float64."""
    half_product: bool = False
    """True if the operator multiplies matrices in half precision, however small they are."""
    operator_known: bool = True
    """True if the operator is known; a bare report has none."""

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    def get(self, name: str, default: float = 0.0) -> float:
        """Return an optional value, or `default` if it was not measured."""
        return self.values.get(name, default)

    def missing(self, needs: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names in `needs` that were neither measured nor given by the caller."""
        caller_facts = {"asks_for_tensor_cores"} if self.asks_for_tensor_cores is not None else set()
        return tuple(name for name in needs if name not in self.values and name not in caller_facts)

    @property
    def dram_share(self) -> float:
        """DRAM bandwidth over the highest that the device reaches, 0 to 1."""
        return min(1.0, self["dram_busy_pct"] / self.dram_ceiling_pct)

    @property
    def idle_share(self) -> float:
        """Share of the time in which neither the DRAM nor a pipe of the multiprocessors was busy, 0 to 1."""
        return max(0.0, 1 - max(self.dram_share, self["sm_busy_pct"] / 100))

    @property
    def is_idle(self) -> bool:
        """True if neither the DRAM nor the multiprocessors are near their limit, so that waiting costs time."""
        return self.dram_share < SATURATED / 100 and self["sm_busy_pct"] < LOW_USE

    def stalls_on(self, stall: str) -> bool:
        """Return whether one stall is high in a kernel that is slow because of it."""
        return self[stall] >= STALLED and self["issue_active_pct"] < ISSUING and self.is_idle


def waiting(reason: str) -> str:
    """Return the threshold, in words, of a stall that `Facts.stalls_on` tests."""
    return (
        f"{STALLED:g} % of warp cycles or more waiting {reason}, with fewer than {ISSUING:g} % of cycles issuing, "
        f"the DRAM below {SATURATED:g} % of its ceiling and the pipes below {LOW_USE:g} %"
    )


BUSY = ("dram_busy_pct", "sm_busy_pct")
"""Facts that `Facts.idle_share` and `Facts.is_idle` need."""

STALL_FACTS = ("issue_active_pct", *BUSY)
"""Facts that `Facts.stalls_on` needs in addition to the stall."""


class Symptom(NamedTuple):
    """One rule: the values that it reads, the condition under which it holds, and the advice that follows."""

    id: str
    """File name, without suffix, of its page in docs/knowledge/symptoms/."""
    title: str
    """The problem, in a few words."""
    bottleneck: Bottleneck
    """Class of bottleneck that the symptom belongs to."""
    metric: str
    """Name of the metric that triggers the rule."""
    threshold: str
    """The condition in words, with its numbers; the symptom's page gives the reason for each number."""
    needs: tuple[str, ...]
    """Facts that the rule requires in addition to the metric."""
    holds: Callable[[Facts], bool]
    """Function that returns whether the symptom is present."""
    saves: Callable[[Facts], float]
    """Function that returns the largest share of the kernel's time that the cure could save, 0 to 1."""
    entries: tuple[str, ...]
    """Ids of the knowledge entries that deal with it, the first one to try first."""
    action: str
    """The cure, in one line."""
    mechanism: str
    """The reason why it costs time, in one sentence."""
    explains: tuple[str, ...] = ()
    """Ids of symptoms that follow from this one."""
    conclusive: bool = False
    """True if no other symptom matters when this one is present."""


def stall_symptom(
    symptom_id: str,
    title: str,
    metric: str,
    reason: str,
    *,
    entries: tuple[str, ...],
    action: str,
    mechanism: str,
    explains: tuple[str, ...] = (),
) -> Symptom:
    """Return the symptom of one stall: it is high in an idle kernel, and costs its share of the idle time."""
    return Symptom(
        id=symptom_id,
        title=title,
        bottleneck="latency",
        metric=metric,
        threshold=waiting(reason),
        needs=STALL_FACTS,
        holds=lambda f: f.stalls_on(metric),
        saves=lambda f: f[metric] / 100 * f.idle_share,
        entries=entries,
        action=action,
        mechanism=mechanism,
        explains=explains,
    )
