"""A profile from timings alone: achieved bandwidth and rate, scaling, sweep and the compiler's report."""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.core.metrics import METRICS
from warpsmith.core.profile import Bottleneck, Metric, Observations, Point, Profile, Stage
from warpsmith.profiling.diagnosis import rules

AT_THE_LIMIT = 90.0
"""Percent of the ceiling from which nothing is left to explain."""

_MEMORY, _COMPUTE = 55.0, 55.0
_WITHOUT = {
    "gpu": "with counters: measured bytes, occupancy, stall reasons, L2 hit rate, tensor-core share",
    "cpu": "with counters: measured bytes, cache misses, instructions a cycle",
}


def summarise(seen: Observations) -> Profile:
    """The profiler's contract from what the lab observed."""
    values = _values(seen)
    bottleneck = _bottleneck(values)
    return Profile(
        version=seen.version,
        language=seen.language,
        solution_sha256=seen.solution_sha256,
        evidence="timings",
        stages=tuple(_stage(point, seen) for point in sorted(seen.points, key=lambda p: -p.seconds)),
        bottleneck=bottleneck,
        root_cause=_root_cause(bottleneck, seen, values),
        opportunities=rules.opportunities(seen.kind, values),
        metrics=tuple(
            Metric(name=name, value=round(value, 3)) for name, value in values.items() if name in METRICS
        ),
        without=_WITHOUT[seen.kind],
        measured=seen.measured,
    )


def _values(seen: Observations) -> dict[str, float]:
    shares = {point.workload: _share(point) for point in seen.points}
    values = {
        "dram_pct": _whole(seen, lambda p: p.memory_seconds),
        "ceiling_pct": _whole(seen, lambda p: p.floor_seconds),
        "worst_ceiling_pct": min(shares.values()),
        "small_ceiling_pct": _share(seen.smallest),
        "small_time_us": seen.smallest.seconds * 1e6,
        "time_us": seen.largest.seconds * 1e6,
        "cores": float(seen.cores),
    }
    if all(p.compute_seconds for p in seen.points):
        values["compute_pct"] = _whole(seen, lambda p: p.compute_seconds)
    if len(seen.sweep) > 1:
        large, small = seen.sweep[0], seen.sweep[-1]
        values["size_slope"] = (large.seconds / large.bytes) / (small.seconds / small.bytes)
    if seen.one_thread_seconds is not None:
        values["thread_scaling"] = seen.one_thread_seconds / seen.largest.seconds
    if seen.host_seconds is not None:
        values["host_overhead_us"] = seen.host_seconds * 1e6
    return values | _resources(seen)


def _resources(seen: Observations) -> dict[str, float]:
    """The worst kernel of the compiler's report counts."""
    pairs = {
        "registers_per_thread": [r.registers for r in seen.resources],
        "shared_bytes": [r.shared_bytes for r in seen.resources],
        "spill_bytes": [r.spill_bytes for r in seen.resources],
        "vectorized_loops": [r.vectorized_loops for r in seen.resources],
        "missed_loops": [r.missed_loops for r in seen.resources],
    }
    known = {name: [v for v in values if v is not None] for name, values in pairs.items()}
    return {name: float(max(values)) for name, values in known.items() if values}


def _bottleneck(values: dict[str, float]) -> Bottleneck:
    if values["ceiling_pct"] >= AT_THE_LIMIT:
        return "at-the-limit"
    if values.get("host_overhead_us", 0.0) > values["time_us"]:
        return "launch"
    if values.get("compute_pct", 0.0) >= max(_COMPUTE, values["dram_pct"]):
        return "compute"
    return "memory" if values["dram_pct"] >= _MEMORY else "latency"


def _stage(point: Point, seen: Observations) -> Stage:
    share, dram = _share(point), 100 * point.memory_seconds / point.seconds
    compute = 100 * point.compute_seconds / point.seconds
    bottleneck = _bottleneck({"ceiling_pct": share, "dram_pct": dram, "compute_pct": compute, "time_us": 1e9})
    overhead = seen.host_seconds or 0.0
    issue = f"{share:.0f} % of the ceiling"
    if overhead > point.seconds:
        issue, bottleneck = f"{issue}; the host takes {overhead * 1e6:.0f} us a call", "launch"
    return Stage(
        name=point.workload, seconds=point.seconds, dram_pct=round(dram, 1), bottleneck=bottleneck, issue=issue
    )


def _root_cause(bottleneck: Bottleneck, seen: Observations, values: dict[str, float]) -> str:
    where = f"Bandwidth is {values['dram_pct']:.0f} % of the measured ceiling over the workloads"
    worst = min(seen.points, key=_share)
    behind = f"{worst.workload} is the furthest behind at {_share(worst):.0f} %."
    match bottleneck:
        case "at-the-limit":
            return f"{where}; what is left is within a tenth of the machine's own copy. {behind}"
        case "memory":
            return f"{where}: traffic or its latency, not arithmetic. {behind}"
        case "compute":
            return f"Arithmetic is at {values['compute_pct']:.0f} % of its ceiling, above the bandwidth. {behind}"
        case "launch":
            return f"A call costs the host {values['host_overhead_us']:.0f} us, more than the device. {behind}"
        case "latency":
            scaling = values.get("thread_scaling")
            serial = f" and all cores are only {scaling:.1f} times one" if scaling is not None else ""
            return f"{where}{serial}: neither ceiling is near, so work waits on itself. {behind}"


def _share(point: Point) -> float:
    return 100 * point.floor_seconds / point.seconds


def _whole(seen: Observations, part: Callable[[Point], float]) -> float:
    """Percent of the time over all workloads: where the time goes decides, not how many small ones there are."""
    return 100 * sum(part(point) for point in seen.points) / sum(point.seconds for point in seen.points)
