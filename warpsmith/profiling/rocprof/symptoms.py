"""Symptoms of kernels on AMD's GPUs: a share, a threshold with its source, the bottleneck's name and what to do.

AMD publishes one threshold for shares of a peak: yellow over 50 %, red over 90 %. Where AMD publishes none, the
table says whose number it is. A share that was not measured is UNKNOWN: no rule guesses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from warpsmith.profiling.diagnosis.symptom import STALLED

YELLOW, RED = 50.0, 90.0
"""Percent over which AMD's profiler colours a share yellow and red."""

_COLOURS = "ROCm Compute Profiler, color coding: yellow over 50 %, red over 90 %"
_MODEL = "ROCm Compute Profiler, performance model"
_COUNTERS = "ROCprofiler-SDK, counter_defs.yaml"
_NCU = "Nsight Compute's rule for stalls; AMD publishes no threshold"


class AmdSymptom(NamedTuple):
    """One rule over one share, with a second one as a guard if the first alone is no problem."""

    id: str
    """Name of the rule."""
    bottleneck: str
    """Name of the bottleneck."""
    metric: str
    """Name of the share that the rule reads."""
    threshold: float
    """Value from which the rule applies, or below which it applies."""
    sentence: str
    """The cause, with `{value}` for the share."""
    action: str
    """The cure, in one line."""
    entry: str
    """Id of the knowledge entry with instructions."""
    source: str
    """Document that the threshold or the meaning of the share comes from."""
    below: bool = False
    """True if the rule applies below its threshold."""
    guard: str = ""
    """Name of a second share; empty if there is none."""
    guard_threshold: float = YELLOW
    """Value of the second share from which, or below which, the rule applies."""
    guard_below: bool = False
    """True if the second share must lie below its threshold."""
    general: bool = False
    """True if the rule says only that waves wait; one that says for what comes first."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the shares that the rule reads."""
        return (self.metric, self.guard) if self.guard else (self.metric,)

    @property
    def condition(self) -> str:
        """The rule in words."""
        parts = [_condition(self.metric, self.threshold, below=self.below)]
        if self.guard:
            parts.append(_condition(self.guard, self.guard_threshold, below=self.guard_below))
        return " and ".join(parts)

    def holds(self, values: Mapping[str, float]) -> bool | None:
        """Return whether the rule applies, or None if the shares that would decide it are not in `values`."""
        if self.metric not in values:
            return None
        if not _passes(values[self.metric], self.threshold, below=self.below):
            return False
        if not self.guard:
            return True
        if self.guard not in values:
            return None
        return _passes(values[self.guard], self.guard_threshold, below=self.guard_below)


def _condition(metric: str, threshold: float, *, below: bool) -> str:
    return f"{metric} {'below' if below else 'from'} {threshold:g}"


def _passes(value: float, threshold: float, *, below: bool) -> bool:
    return value < threshold if below else value >= threshold


SYMPTOMS: tuple[AmdSymptom, ...] = (
    AmdSymptom(
        "hbm", "memory: HBM bandwidth", "hbm_pct", YELLOW,
        "L2 exchanges {value} % of the peak of HBM with memory; the Infinity Cache may serve a part of it.",
        "move fewer bytes: fuse with a neighbour, or narrow the types", "operator-fusion", _COLOURS,
    ),
    AmdSymptom(
        "l2", "memory: L2", "l2_pct", YELLOW,
        "The L2's channels are busy for {value} % of their cycles.",
        "let workgroups that share data run on one XCD, in an order that reuses its L2", "l2-aware-rasterization",
        _COLOURS,
    ),
    AmdSymptom(
        "l1-stall", "memory: vL1D waits for L2", "l1_stall_pct", YELLOW,
        "The vector L1 cache is stalled on data from L2 for {value} % of its cycles.",
        "reuse data in registers or LDS, and load neighbouring addresses in neighbouring lanes",
        "coalesced-access",
        f"{_MODEL}, vector L1 cache (Stalled on L2 Data); {_COLOURS}",
    ),
    AmdSymptom(
        "memory-unit-stall", "memory: vL1D returns data too slowly", "memory_unit_stall_pct", YELLOW,
        "The memory unit is stalled for {value} % of the time.",
        "load and store fewer and wider", "vectorized-memory-access", f"{_COUNTERS} (MemUnitStalled); {_COLOURS}",
    ),
    AmdSymptom(
        "lds-conflicts", "memory: LDS bank conflicts", "lds_conflict_pct", YELLOW,
        "Bank conflicts stall the LDS for {value} % of the time.",
        "pad the rows of the tile, or swizzle its columns", "bank-conflict-padding-swizzle",
        f"{_COUNTERS} (LDSBankConflict); {_COLOURS}",
    ),
    AmdSymptom(
        "scratch", "memory: scratch", "spill_bytes", 1.0,
        "Each thread has {value} bytes of scratch: registers were spilled, or an array is private.",
        "cut the tile or the unrolling until nothing spills", "register-spills",
        f"{_MODEL}, Scratch Stall Rate: private memory leaves room for few waves", guard="memory_wait_pct",
    ),
    AmdSymptom(
        "valu", "compute: VALU", "valu_pct", YELLOW,
        "The vector ALUs process instructions for {value} % of the time.",
        "issue fewer vector instructions for each element", "fewer-instructions-per-element", _COLOURS,
    ),
    AmdSymptom(
        "mfma", "compute: MFMA", "mfma_pct", YELLOW,
        "The matrix cores are busy for {value} % of the time.",
        "narrow the operands, or do fewer products", "low-precision-io-fp32-accumulate", _COLOURS,
    ),
    AmdSymptom(
        "instruction-cache", "instruction cache", "icache_miss_pct", YELLOW,
        "{value} % of instruction fetches miss the L1I cache or hit a line that is still on its way.",
        "unroll less, so that the loop fits the 64 KiB that two compute units share", "oversized-unrolled-body",
        f"{_MODEL}, L1I cache; {_COLOURS}", guard="memory_wait_pct",
    ),
    AmdSymptom(
        "small-grid", "scheduling: the grid is too small", "blocks_per_unit", 1.0,
        "There are {value} workgroups for each compute unit, and a compute unit without one does nothing.",
        "split the work over more workgroups", "tiny-grid",
        f"{_MODEL}, SIMD Utilization: low values mean that the device was not saturated", below=True,
    ),
    AmdSymptom(
        "workgroup-stall", "scheduling: workgroups do not fit", "workgroup_stall_pct", YELLOW,
        "Workgroups wait for registers, LDS or wave slots in {value} % of the cycles of the workgroup manager.",
        "use fewer registers or less LDS for each workgroup", "occupancy-by-resource-budget",
        f"{_MODEL}, Scheduler-Pipe Stall Rate, to be read with the occupancy; {_COLOURS}",
        guard="resident_pct", guard_below=True,
    ),
    AmdSymptom(
        "occupancy", "latency: too few waves", "resident_pct", YELLOW,
        "Only {value} % of the wave slots are used, and the waves that there are mostly wait for memory.",
        "use fewer registers or less LDS, or larger workgroups", "occupancy-by-resource-budget",
        f"{_MODEL}, Wavefront Occupancy; half of the slots is Warpsmith's number", below=True,
        guard="memory_wait_pct", general=True,
    ),
    AmdSymptom(
        "vector-memory-wait", "latency: vector memory", "long_scoreboard_pct", STALLED,
        "Traced waves wait for vector memory for {value} % of their cycles (s_waitcnt vmcnt).",
        "load the next tile while this one is computed", "software-pipelining-async-copy", _NCU,
    ),
    AmdSymptom(
        "lds-wait", "latency: LDS", "short_scoreboard_pct", STALLED,
        "Traced waves wait for the LDS for {value} % of their cycles (s_waitcnt lgkmcnt).",
        "issue LDS reads earlier, and keep operands in registers", "register-tiling", _NCU,
    ),
    AmdSymptom(
        "barrier-wait", "latency: barriers", "barrier_stall_pct", STALLED,
        "Traced waves wait at barriers for {value} % of their cycles.",
        "meet less often, with equal work before each barrier", "excess-synchronization", _NCU,
    ),
    AmdSymptom(
        "traced-wait", "latency: traced waves wait", "traced_wait_pct", YELLOW,
        "Traced waves wait for {value} % of their cycles, whatever for.",
        "keep more loads in flight, and see which s_waitcnt the trace's instructions name",
        "memory-level-parallelism", f"ROCprofiler-SDK, thread trace (wave state WAIT); {_COLOURS}", general=True,
    ),
    AmdSymptom(
        "traced-stall", "latency: traced waves cannot issue", "traced_stall_pct", YELLOW,
        "Traced waves are stalled for {value} % of their cycles: the unit of their next instruction is busy.",
        "issue fewer instructions to the busiest unit", "fewer-instructions-per-element",
        f"ROCprofiler-SDK, thread trace (wave state STALL); {_COLOURS}", general=True,
    ),
    AmdSymptom(
        "issue-wait", "latency: issue", "issue_wait_pct", YELLOW,
        "Waves cannot issue for {value} % of their cycles: a pipe pushes back, or another wave has the slot.",
        "issue fewer instructions to the busiest pipe", "fewer-instructions-per-element",
        f"{_MODEL}, Issue Wait Cycles; {_COLOURS}", general=True,
    ),
    AmdSymptom(
        "memory-wait", "latency: waves wait for memory", "memory_wait_pct", YELLOW,
        "Waves wait for memory of any kind for {value} % of their cycles.",
        "keep more loads in flight", "memory-level-parallelism",
        f"{_MODEL}, Dependency Wait Cycles; {_COLOURS}", general=True,
    ),
)  # fmt: skip
"""All symptoms; those with equal shares keep this order."""
