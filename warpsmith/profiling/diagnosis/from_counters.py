"""Profile from hardware counters: the classifier's symptoms for each kernel of a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from warpsmith.core.base import this_minute
from warpsmith.core.metrics import METRICS
from warpsmith.core.profile import Bottleneck, Metric, Observations, Opportunity, Profile, Stage
from warpsmith.profiling.counters import Counters, Launch
from warpsmith.profiling.diagnosis.classifier import LEAST_SAVING, DetectedSymptom, Diagnosis, diagnose
from warpsmith.profiling.diagnosis.from_timings import profile_from_timings
from warpsmith.profiling.diagnosis.symptom import DRAM_CEILING, LOW_USE, Facts

MAX_OPPORTUNITIES = 3
"""Largest number of opportunities in one profile."""

MAX_ADVICE = 5
"""Largest number of quoted findings of the tool's own rules."""

_NAME_LENGTH = 60
"""Characters of a kernel's name that are shown: names of C++ templates run to hundreds."""


class KernelDiagnosis(NamedTuple):
    """One kernel of a call, with its symptoms."""

    launch: Launch
    """The median launch, which represents all launches."""
    launches: int
    """Number of launches."""
    seconds: float
    """Time of all launches, in seconds."""
    facts: Facts
    """Facts that the rules read."""
    diagnosis: Diagnosis
    """Symptoms that the rules detected."""

    @property
    def symptoms(self) -> tuple[DetectedSymptom, ...]:
        """Symptoms that may be reported: without its operator nobody knows whether a busy unit is at a limit."""
        return tuple(
            item
            for item in self.diagnosis.symptoms
            if self.facts.operator_known or item.symptom.bottleneck != "at-the-limit"
        )

    @property
    def name(self) -> str:
        """Name in the stage table."""
        name = self.launch.kernel[:_NAME_LENGTH]
        return f"{name} x{self.launches}" if self.launches > 1 else name

    @property
    def bottleneck(self) -> Bottleneck:
        """Class of the first symptom; without a symptom, that of the busier of memory and arithmetic."""
        if self.symptoms:
            return self.symptoms[0].symptom.bottleneck
        dram, sm = self.facts.get("dram_busy_pct"), self.facts.get("sm_busy_pct")
        if max(dram, sm) < LOW_USE:
            return "latency"
        return "memory" if dram >= sm else "compute"


class _KernelSymptom(NamedTuple):
    """A symptom of one kernel, weighted by the kernel's share of the call."""

    saves: float
    """Largest share of the call's time that the cure could save in this kernel."""
    detected: DetectedSymptom
    """The symptom with its value."""
    kernel: KernelDiagnosis
    """The kernel that has the symptom."""


def profile_from_counters(
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
    half_product: bool = False,
    operator_known: bool = True,
    workload: str = "",
    details: str = "",
) -> Profile:
    """Return the profile of a version from the launches of one call.

    Args:
        counters: the report; all its launches belong to one call.
        version: name such as `v3`.
        language: language of the version.
        sha256: SHA-256 of the version's file.
        observations: timings of the version; their values are added to the counted ones.
        algorithmic_bytes: bytes that the call must move; without it, no traffic counts as excessive.
        host_seconds: host time of a call beyond the device's time; default: as observed.
        dram_ceiling_pct: percent of the DRAM's peak bandwidth that a copy reached on the device.
        asks_for_tensor_cores: whether the operator's arithmetic belongs on tensor cores; None if unknown.
        float64: whether the operator's own types are float64.
        half_product: whether the operator multiplies matrices in half precision.
        operator_known: whether the operator is known; if not, nothing is called at its limit.
        workload: name of the workload that was called.
        details: path of the file with all counters.
    """
    timed = profile_from_timings(observations) if observations else None
    if host_seconds is None and observations:
        host_seconds = observations.host_seconds
    call = call_values(counters, algorithmic_bytes, host_seconds)
    operator = Facts({}, dram_ceiling_pct, asks_for_tensor_cores, float64, half_product, operator_known)
    kernels = diagnose_kernels(counters, call, operator)
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
        metrics=_metrics(timed, hottest, call),
        without="; ".join(hottest.diagnosis.not_evaluated),
        advice=_advice(counters.tool, hottest.launch),
        workload=workload,
        details=details,
        measured=this_minute(),
    )


def call_values(
    counters: Counters, algorithmic_bytes: float | None, host_seconds: float | None
) -> dict[str, float]:
    """Return the values of the whole call, as opposed to one kernel."""
    launches = counters.launches
    values = {"launch_count": float(len(launches)), "time_us": 1e6 * sum(launch.seconds for launch in launches)}
    moved = [launch.values.get("dram_bytes") for launch in launches]
    if algorithmic_bytes and None not in moved:
        values["traffic_amplification"] = sum(filter(None, moved)) / algorithmic_bytes
    if host_seconds is not None:
        values["host_overhead_us"] = 1e6 * host_seconds
    return values


def diagnose_kernels(counters: Counters, call: dict[str, float], operator: Facts) -> list[KernelDiagnosis]:
    """Group launches by kernel and configuration and diagnose each group, the most time first."""

    def configuration(launch: Launch) -> tuple[object, ...]:
        return launch.kernel, launch.grid, launch.block

    grouped = groupby(sorted(counters.launches, key=configuration), configuration)
    kernels = [_kernel(list(launches), call, operator) for _, launches in grouped]
    return sorted(kernels, key=lambda kernel: -kernel.seconds)


def _kernel(launches: Sequence[Launch], call: dict[str, float], operator: Facts) -> KernelDiagnosis:
    median = sorted(launches, key=lambda launch: launch.seconds)[(len(launches) - 1) // 2]
    facts = replace(operator, values={**median.values, **call})
    seconds = sum(launch.seconds for launch in launches)
    return KernelDiagnosis(median, len(launches), seconds, facts, diagnose(facts))


def _stage(kernel: KernelDiagnosis) -> Stage:
    values, symptoms = kernel.launch.values, kernel.symptoms
    return Stage(
        name=kernel.name,
        seconds=kernel.seconds,
        tensor_pct=values.get("tensor_pct"),
        dram_pct=values.get("dram_busy_pct"),
        occupancy_pct=values.get("occupancy_pct"),
        bottleneck=kernel.bottleneck,
        issue=symptoms[0].symptom.title if symptoms else "no symptom",
    )


def _root_cause(kernel: KernelDiagnosis) -> str:
    """Describe the first symptom with its numbers and its mechanism."""
    if not kernel.symptoms and kernel.diagnosis.symptoms:
        return _busiest(kernel)
    if not kernel.symptoms:
        busy = _format_values(kernel.facts, ("dram_busy_pct", "sm_busy_pct", "l2_busy_pct"))
        return f"No symptom passes its threshold in {kernel.name} ({busy})."
    symptom = kernel.symptoms[0].symptom
    values = _format_values(kernel.facts, (symptom.metric, *symptom.needs))
    return f"{symptom.title} in {kernel.name} ({values}). {symptom.mechanism}"


def _busiest(kernel: KernelDiagnosis) -> str:
    """Say how busy the hottest unit is and what was moved, for a report that names no operator."""
    dram, sm = kernel.facts.get("dram_busy_pct"), kernel.facts.get("sm_busy_pct")
    unit, percent = ("The DRAM", dram) if dram >= sm else ("The busiest pipe", sm)
    moved = kernel.launch.values.get("dram_bytes")
    traffic = f", with {moved / 1e6:.1f} MB of DRAM traffic" if moved is not None else ""
    return (
        f"{unit} is at {percent:.1f} % of its peak in {kernel.name}{traffic}. "
        "The report does not say what the operator needs, so this is no statement on its limit."
    )


def _format_values(facts: Facts, names: Sequence[str]) -> str:
    """Format the first three of the named values that are present."""
    return ", ".join(f"{name}={facts[name]:.4g}" for name in [n for n in names if n in facts.values][:3])


def _opportunities(kernels: Sequence[KernelDiagnosis]) -> tuple[Opportunity, ...]:
    """Return at most three opportunities over all kernels, ranked by their share of the call, one for each
    entry."""
    whole = sum(kernel.seconds for kernel in kernels)
    by_entry: dict[str, list[_KernelSymptom]] = {}
    for kernel in kernels:
        for detected in kernel.symptoms:
            group = by_entry.setdefault(detected.symptom.entries[0], [])
            # A kernel's first symptom costs the most; two symptoms with one cure are not added up.
            if all(item.kernel is not kernel for item in group):
                group.append(_KernelSymptom(detected.saves * kernel.seconds / whole, detected, kernel))
    worthwhile = [group for group in by_entry.values() if _gain(group) >= LEAST_SAVING]
    ranked = sorted(worthwhile, key=_gain, reverse=True)[:MAX_OPPORTUNITIES]
    return tuple(_opportunity(group, len(kernels)) for group in ranked)


def _gain(group: Sequence[_KernelSymptom]) -> float:
    """Return the share of the call that a cure saves over all kernels that it helps, at most 1."""
    return min(1.0, sum(item.saves for item in group))


def _opportunity(group: Sequence[_KernelSymptom], kernel_count: int) -> Opportunity:
    """Return one cure as an opportunity, with the trigger of the kernel that it helps most."""
    _, detected, kernel = max(group, key=lambda item: item.saves)
    helped = {item.kernel.name for item in group}
    suffix = f" ({kernel.name})" if len(helped) == 1 < kernel_count else ""
    return Opportunity(
        name=f"{detected.symptom.action}{suffix}",
        gain_pct=round(100 * _gain(group), 1),
        trigger=Metric(name=detected.symptom.metric, value=round(detected.value, 3)),
        entry=detected.symptom.entries[0],
    )


def _metrics(timings: Profile | None, hottest: KernelDiagnosis, call: dict[str, float]) -> tuple[Metric, ...]:
    """Return timed values, then counted ones, without the device time, which the profiler distorts."""
    timed = {metric.name: metric.value for metric in timings.metrics} if timings else {}
    counted = {name: value for name, value in {**hottest.launch.values, **call}.items() if name != "time_us"}
    values = {**timed, **counted}
    return tuple(Metric(name=name, value=round(value, 3)) for name, value in values.items() if name in METRICS)


def _advice(tool: str, launch: Launch) -> tuple[str, ...]:
    """Return the tool's own findings, the largest estimated speedup first."""
    findings = sorted((item for item in launch.advice if item.title), key=lambda item: -(item.speedup_pct or 0))
    lines = [
        f"{tool} {item.rule}: {item.title}" + (f", est. {item.speedup_pct:.0f} %" if item.speedup_pct else "")
        for item in findings
    ]
    return tuple(dict.fromkeys(lines))[:MAX_ADVICE]
