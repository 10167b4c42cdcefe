"""A profile from hardware counters: what the classifier finds in each kernel of a call."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from warpsmith.core.base import this_minute
from warpsmith.core.metrics import METRICS
from warpsmith.core.profile import Bottleneck, Metric, Observations, Opportunity, Profile, Stage
from warpsmith.profiling.counters import Counters, Launch
from warpsmith.profiling.diagnosis import classifier as symptoms
from warpsmith.profiling.diagnosis import from_timings as timings
from warpsmith.profiling.diagnosis.classifier import Diagnosis, Found
from warpsmith.profiling.diagnosis.symptom import DRAM_CEILING, LATENCY, Facts

MOST = 3
"""Opportunities of one profile."""

MOST_ADVICE = 5
"""Findings of the tool's own rules that are quoted."""

_NAME = 60
"""Characters of a kernel's name: mangled templates run to hundreds."""


class Kernel(NamedTuple):
    """One kernel of a call."""

    launch: Launch
    """The launch that speaks for all of them: the median one."""
    launches: int
    """How often it is launched."""
    seconds: float
    """Time of all of its launches."""
    facts: Facts
    """What its rules look at."""
    diagnosis: Diagnosis
    """What they find."""

    @property
    def name(self) -> str:
        """What the stage table calls it."""
        name = self.launch.kernel[:_NAME]
        return f"{name} x{self.launches}" if self.launches > 1 else name

    @property
    def bottleneck(self) -> Bottleneck:
        """The first symptom's class; without one, that of the busier of memory and arithmetic."""
        if self.diagnosis.found:
            return self.diagnosis.found[0].symptom.bottleneck
        dram, sm = self.facts.get("dram_busy_pct"), self.facts.get("sm_busy_pct")
        if max(dram, sm) < LATENCY:
            return "latency"
        return "memory" if dram >= sm else "compute"


class Case(NamedTuple):
    """A symptom of one kernel."""

    saves: float
    """Share of the call's time that the cure could save there."""
    found: Found
    """What was found."""
    kernel: Kernel
    """Where."""


def profile(
    counters: Counters,
    *,
    version: str,
    language: str,
    sha256: str,
    observations: Observations | None = None,
    algorithmic_bytes: float | None = None,
    host_seconds: float | None = None,
    dram_ceiling_pct: float = DRAM_CEILING,
    asks_for_tensor_cores: bool | None = None,
    float64: bool = False,
    workload: str = "",
    details: str = "",
) -> Profile:
    """The profiler's contract from the launches of one call.

    Args:
        counters: the report; every launch in it is of the one call.
        version: `v3`.
        language: of the solution.
        sha256: hash of the solution's file.
        observations: timings of the version, whose values join those that were counted.
        algorithmic_bytes: what the call must move at least; without it no traffic is called excessive.
        host_seconds: what a call costs beyond the device's time; by default as observed.
        dram_ceiling_pct: percent of the DRAM's peak that a copy reached on the device.
        asks_for_tensor_cores: whether the operator's arithmetic belongs on them; None where nobody knows.
        float64: whether the operator's own types are float64.
        workload: whose call it was.
        details: the file with every counter.
    """
    seen = timings.summarise(observations) if observations else None
    if host_seconds is None and observations:
        host_seconds = observations.host_seconds
    call = of_the_call(counters, algorithmic_bytes, host_seconds)
    known = Facts({}, dram_ceiling_pct, asks_for_tensor_cores, float64)
    kernels = kernels_of(counters, call, known)
    hottest = kernels[0]
    return Profile(
        version=version,
        language=language,
        solution_sha256=sha256,
        evidence="counters",
        stages=tuple(_stage(kernel) for kernel in kernels),
        bottleneck=hottest.bottleneck,
        root_cause=_root_cause(hottest),
        opportunities=_opportunities(kernels),
        metrics=_metrics(seen, hottest, call),
        without="; ".join(hottest.diagnosis.not_evaluated),
        advice=_advice(counters.tool, hottest.launch),
        workload=workload,
        details=details,
        measured=this_minute(),
    )


def of_the_call(
    counters: Counters, algorithmic_bytes: float | None, host_seconds: float | None
) -> dict[str, float]:
    """What holds for the call, not for one kernel."""
    launches = counters.launches
    values = {"launch_count": float(len(launches)), "time_us": 1e6 * sum(launch.seconds for launch in launches)}
    moved = [launch.values.get("dram_bytes") for launch in launches]
    if algorithmic_bytes and None not in moved:
        values["traffic_amplification"] = sum(filter(None, moved)) / algorithmic_bytes
    if host_seconds is not None:
        values["host_overhead_us"] = 1e6 * host_seconds
    return values


def kernels_of(counters: Counters, call: dict[str, float], known: Facts) -> list[Kernel]:
    """Launches of one kernel in one configuration together, those that take the most time first."""

    def configuration(launch: Launch) -> tuple[object, ...]:
        return launch.kernel, launch.grid, launch.block

    grouped = groupby(sorted(counters.launches, key=configuration), configuration)
    kernels = [_kernel(list(launches), call, known) for _, launches in grouped]
    return sorted(kernels, key=lambda kernel: -kernel.seconds)


def _kernel(launches: Sequence[Launch], call: dict[str, float], known: Facts) -> Kernel:
    median = sorted(launches, key=lambda launch: launch.seconds)[(len(launches) - 1) // 2]
    facts = Facts({**median.values, **call}, known.dram_ceiling_pct, known.asks_for_tensor_cores, known.float64)
    seconds = sum(launch.seconds for launch in launches)
    return Kernel(median, len(launches), seconds, facts, symptoms.diagnose(facts))


def _stage(kernel: Kernel) -> Stage:
    values, found = kernel.launch.values, kernel.diagnosis.found
    return Stage(
        name=kernel.name,
        seconds=kernel.seconds,
        tensor_pct=values.get("tensor_pct"),
        dram_pct=values.get("dram_busy_pct"),
        occupancy_pct=values.get("occupancy_pct"),
        bottleneck=kernel.bottleneck,
        issue=found[0].symptom.title if found else "no symptom",
    )


def _root_cause(kernel: Kernel) -> str:
    """The first symptom with its numbers, and its mechanism."""
    if not kernel.diagnosis.found:
        busy = _shown(kernel.facts, ("dram_busy_pct", "sm_busy_pct", "l2_busy_pct"))
        return f"No symptom passes its threshold in {kernel.name} ({busy})."
    symptom = kernel.diagnosis.found[0].symptom
    shown = _shown(kernel.facts, (symptom.metric, *symptom.needs))
    return f"{symptom.title} in {kernel.name} ({shown}). {symptom.mechanism}"


def _shown(facts: Facts, names: Sequence[str]) -> str:
    """The first few of these values."""
    return ", ".join(f"{name}={facts[name]:.4g}" for name in [n for n in names if n in facts.values][:3])


def _opportunities(kernels: Sequence[Kernel]) -> tuple[Opportunity, ...]:
    """At most three over all kernels, ranked by what they save of the call; one an entry."""
    whole = sum(kernel.seconds for kernel in kernels)
    cases: dict[str, list[Case]] = {}
    for kernel in kernels:
        for found in kernel.diagnosis.found:
            same = cases.setdefault(found.symptom.entry, [])
            if all(case.kernel is not kernel for case in same):  # of one kernel the first: it costs the most
                same.append(Case(found.saves * kernel.seconds / whole, found, kernel))
    worth = [same for same in cases.values() if _gain(same) >= symptoms.LEAST]
    return tuple(_opportunity(same, among=len(kernels)) for same in sorted(worth, key=_gain, reverse=True)[:MOST])


def _gain(same: Sequence[Case]) -> float:
    """What the cure saves over all kernels that it helps, at most all of the time."""
    return min(1.0, sum(case.saves for case in same))


def _opportunity(same: Sequence[Case], among: int) -> Opportunity:
    """One cure, with the trigger of the kernel that it helps most."""
    _, found, kernel = max(same, key=lambda case: case.saves)
    helped = {case.kernel.name for case in same}
    where = f" ({kernel.name})" if len(helped) == 1 < among else ""
    return Opportunity(
        name=f"{found.symptom.action}{where}",
        gain_pct=round(100 * _gain(same), 1),
        trigger=Metric(name=found.symptom.metric, value=round(found.value, 3)),
        entry=found.symptom.entry,
    )


def _metrics(seen: Profile | None, hottest: Kernel, call: dict[str, float]) -> tuple[Metric, ...]:
    """What was timed, then what was counted; the device's time under a profiler is no time a call."""
    timed = {metric.name: metric.value for metric in seen.metrics} if seen else {}
    counted = {name: value for name, value in {**hottest.launch.values, **call}.items() if name != "time_us"}
    values = {**timed, **counted}
    return tuple(Metric(name=name, value=round(value, 3)) for name, value in values.items() if name in METRICS)


def _advice(tool: str, launch: Launch) -> tuple[str, ...]:
    """The tool's own findings, the largest estimate first."""
    said = sorted((one for one in launch.advice if one.title), key=lambda one: -(one.speedup_pct or 0))
    lines = [
        f"{tool} {one.rule}: {one.title}" + (f", est. {one.speedup_pct:.0f} %" if one.speedup_pct else "")
        for one in said
    ]
    return tuple(dict.fromkeys(lines))[:MOST_ADVICE]
