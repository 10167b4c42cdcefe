"""Profile from timings alone: achieved bandwidth and rate, scaling, sweep and the compiler's report."""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.core.metrics import METRICS
from warpsmith.core.profile import Bottleneck, Metric, Observations, Point, Profile, Stage
from warpsmith.profiling.diagnosis.cpu_code import CodeFacts
from warpsmith.profiling.diagnosis.cpu_rules import CpuFacts, DataSizes, code_values, find_cpu_findings
from warpsmith.profiling.diagnosis.rules import suggest_opportunities

AT_THE_LIMIT = 90.0
"""Percent of the ceiling at and above which no bottleneck is left to explain."""

_MEMORY_BOUND, _COMPUTE_BOUND = 55.0, 55.0
"""Percent of the ceiling from which the kernel counts as memory-bound or compute-bound."""
_WITHOUT = {
    "gpu": "with counters: measured bytes, occupancy, stall reasons, L2 hit rate, tensor-core share",
    "cpu": "with counters: measured bytes, cache misses, instructions a cycle",
}


def profile_from_timings(
    observations: Observations, code: CodeFacts | None = None, sizes: DataSizes | None = None
) -> Profile:
    """Return the profile of a version from the lab's timings, and on a CPU from its code.

    Args:
        observations: the timings.
        code: facts that the code of a CPU version shows; None if they are unknown.
        sizes: sizes of its data and of the caches; None if they are unknown.
    """
    values = _values(observations)
    if code:
        values |= code_values(code)
        # The compiler's report may leave out a loop that it vectorised for another type.
        values["missed_loops"] = max(values.get("missed_loops", 0.0), float(len(code.missed)))
    bottleneck = _bottleneck(values)
    findings = find_cpu_findings(CpuFacts(values, code, sizes or DataSizes()))
    on_gpu = observations.kind == "gpu"
    return Profile(
        version=observations.version,
        language=observations.language,
        solution_sha256=observations.solution_sha256,
        evidence="timings",
        stages=tuple(
            _stage(point, observations) for point in sorted(observations.points, key=lambda p: -p.seconds)
        ),
        bottleneck=bottleneck,
        root_cause=_root_cause(bottleneck, observations, values, findings[0].text if findings else ""),
        opportunities=suggest_opportunities(values) if on_gpu else tuple(item.opportunity for item in findings),
        metrics=tuple(
            Metric(name=name, value=round(value, 3)) for name, value in values.items() if name in METRICS
        ),
        without=_WITHOUT[observations.kind],
        load=observations.load,
        measured=observations.measured,
    )


def _values(observations: Observations) -> dict[str, float]:
    shares = {point.workload: _share(point) for point in observations.points}
    values = {
        "dram_pct": _percent_of_time(observations, lambda p: p.memory_seconds),
        "ceiling_pct": _percent_of_time(observations, lambda p: p.floor_seconds),
        "worst_ceiling_pct": min(shares.values()),
        "small_ceiling_pct": _share(observations.smallest),
        "small_time_us": observations.smallest.seconds * 1e6,
        "time_us": observations.largest.seconds * 1e6,
        "cores": float(observations.cores),
    }
    if all(p.compute_seconds for p in observations.points):
        values["compute_pct"] = _percent_of_time(observations, lambda p: p.compute_seconds)
    if len(observations.sweep) > 1:
        large, small = observations.sweep[0], observations.sweep[-1]
        values["size_slope"] = (large.seconds / large.bytes) / (small.seconds / small.bytes)
    if observations.one_thread_seconds is not None:
        values["thread_scaling"] = observations.one_thread_seconds / observations.largest.seconds
    if observations.host_seconds is not None:
        values["host_overhead_us"] = observations.host_seconds * 1e6
    return values | _resources(observations)


def _resources(observations: Observations) -> dict[str, float]:
    """Return the largest value of each resource over the kernels in the compiler's report."""
    columns = {
        "registers_per_thread": [r.registers for r in observations.resources],
        "shared_bytes": [r.shared_bytes for r in observations.resources],
        "spill_bytes": [r.spill_bytes for r in observations.resources],
        "vectorized_loops": [r.vectorized_loops for r in observations.resources],
        "missed_loops": [r.missed_loops for r in observations.resources],
    }
    measured = {name: [v for v in values if v is not None] for name, values in columns.items()}
    return {name: float(max(values)) for name, values in measured.items() if values}


def _bottleneck(values: dict[str, float]) -> Bottleneck:
    if values["ceiling_pct"] >= AT_THE_LIMIT:
        return "at-the-limit"
    if values.get("host_overhead_us", 0.0) > values["time_us"]:
        return "launch"
    if values.get("compute_pct", 0.0) >= max(_COMPUTE_BOUND, values["dram_pct"]):
        return "compute"
    return "memory" if values["dram_pct"] >= _MEMORY_BOUND else "latency"


def _stage(point: Point, observations: Observations) -> Stage:
    share, dram = _share(point), 100 * point.memory_seconds / point.seconds
    compute = 100 * point.compute_seconds / point.seconds
    bottleneck = _bottleneck({"ceiling_pct": share, "dram_pct": dram, "compute_pct": compute, "time_us": 1e9})
    overhead = observations.host_seconds or 0.0
    issue = f"{share:.0f} % of the ceiling"
    if overhead > point.seconds:
        issue, bottleneck = f"{issue}; the host takes {overhead * 1e6:.0f} us a call", "launch"
    return Stage(
        name=point.workload, seconds=point.seconds, dram_pct=round(dram, 1), bottleneck=bottleneck, issue=issue
    )


def _root_cause(bottleneck: Bottleneck, observations: Observations, values: dict[str, float], finding: str) -> str:
    """Describe what limits the version in two sentences at most, with the first finding in its code."""
    bandwidth = f"Bandwidth is {values['dram_pct']:.0f} % of the measured ceiling over the workloads"
    worst = min(observations.points, key=_share)
    slowest = f"{worst.workload} is the furthest behind at {_share(worst):.0f} %."
    match bottleneck:
        case "at-the-limit":
            return f"{bandwidth}; what is left is within a tenth of the machine's own copy. {slowest}"
        case "memory":
            return f"{bandwidth}: {finding or 'traffic or its latency, not arithmetic'}. {slowest}"
        case "compute":
            return f"Arithmetic is at {values['compute_pct']:.0f} % of its ceiling, above the bandwidth. {slowest}"
        case "launch":
            return f"A call costs the host {values['host_overhead_us']:.0f} us, more than the device. {slowest}"
        case "latency":
            idle = "other processes used the cores" if observations.load else "so work waits on itself"
            return f"{bandwidth}: {finding or f'neither ceiling is near, {idle}'}. {slowest}"


def _share(point: Point) -> float:
    return 100 * point.floor_seconds / point.seconds


def _percent_of_time(observations: Observations, part: Callable[[Point], float]) -> float:
    """Return `part` in percent of the time, summed over all workloads, so that many small workloads do not
    dominate."""
    return (
        100
        * sum(part(point) for point in observations.points)
        / sum(point.seconds for point in observations.points)
    )
