"""Shares that AMD's symptoms read: how busy a unit is and what waves wait for, in percent, from AMD's counters.

The formulas are those of ROCm Compute Profiler (analysis configuration of gfx942) and of rocprofiler-sdk's
counter_defs.yaml. GRBM_GUI_ACTIVE is added up over the XCDs, so a compute unit's cycles are that sum over their
number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from warpsmith.profiling.formula import Formula, FormulaTable, derive_values, percent_of, ratio

UNITS, XCDS, BANDWIDTH, CLOCK = MACHINE = ("Cu_Count", "Num_Xcc", "Hbm_Bandwidth", "Max_Engine_Clk_Fcompute")
"""Values of the device: numbers of compute units and XCDs, peak of HBM in GB/s, highest clock in MHz."""

BYTES, BLOCKS, SECONDS = "dram_bytes", "blocks", "Seconds"
"""Values of the launch: bytes beyond L2, blocks of the grid, and its time."""

_ACTIVE = "GRBM_GUI_ACTIVE"
_CYCLES = (_ACTIVE, XCDS, UNITS)
_DEVICE_CYCLES = (_ACTIVE, "TCC_CYCLE", "TCC_CYCLE_sum")
_MOST_CYCLES = 1.5
"""Counted cycles over the most that the launch can have, above which they also cover time around the launch."""
_MOST_PERCENT = 101.0
"""Share above which the counters cannot be of the same launch; one percent is left for two clocks."""
_RESIDENT = 400 / 32  # wave cycles are counted in fours; a compute unit has slots for 32 waves


def _of_cycles(scale: float) -> Callable[..., float]:
    def share(part: float, active: float, xcds: float, units: float) -> float:
        return scale * part / (active / xcds * units)

    return share


def _bandwidth(moved: float, seconds: float, peak: float) -> float:
    return 100 * moved / seconds / (1e9 * peak)


def _misses(hits: float, requests: float) -> float:
    return 100 - percent_of(hits, requests)


def _summed(part: str, whole: str) -> tuple[Formula, ...]:
    """Return the share of two counters by their derived sums, and by the raw names that the CSV adds up itself."""
    return Formula((f"{part}_sum", f"{whole}_sum"), percent_of), Formula((part, whole), percent_of)


SHARES: FormulaTable = {
    "hbm_pct": (Formula((BYTES, SECONDS, BANDWIDTH), _bandwidth),),
    "l2_pct": _summed("TCC_BUSY", "TCC_CYCLE"),
    "l1_stall_pct": _summed("TCP_PENDING_STALL_CYCLES", "TCP_GATE_EN1"),
    "memory_unit_stall_pct": (Formula(("MemUnitStalled",)),),
    "lds_conflict_pct": (
        Formula(("LDSBankConflict",)),
        Formula(("SQ_LDS_BANK_CONFLICT", *_CYCLES), _of_cycles(100)),
    ),
    "valu_pct": (Formula(("VALUBusy",)), Formula(("SQ_ACTIVE_INST_VALU", *_CYCLES), _of_cycles(100))),
    "mfma_pct": (Formula(("MfmaUtil",)), Formula(("SQ_VALU_MFMA_BUSY_CYCLES", *_CYCLES), _of_cycles(25))),
    "resident_pct": (
        Formula(("OccupancyPercent",)),
        Formula(("SQ_WAVE_CYCLES", *_CYCLES), _of_cycles(_RESIDENT)),
    ),
    "memory_wait_pct": (Formula(("SQ_WAIT_ANY", "SQ_WAVE_CYCLES"), percent_of),),
    "issue_wait_pct": (Formula(("SQ_WAIT_INST_ANY", "SQ_WAVE_CYCLES"), percent_of),),
    "icache_miss_pct": (Formula(("SQC_ICACHE_HITS", "SQC_ICACHE_REQ"), _misses),),
    "workgroup_stall_pct": (Formula(("SPI_RA_RES_STALL_CSN", "SPI_CSN_BUSY"), percent_of),),
    "blocks_per_unit": (Formula((BLOCKS, UNITS), ratio),),
}
"""Formulas by name of the share."""


def share_values(reading: Mapping[str, float]) -> dict[str, float]:
    """Compute every share that the reading allows; one that is impossible is left out, because it says nothing.

    Counters of two passes are of two executions, which differ for short kernels. The device's cycles
    may cover the time around a short kernel; then no share of them is a share of the kernel.
    """
    used = {name: value for name, value in reading.items() if name not in _DEVICE_CYCLES or not _too_long(reading)}
    shares = derive_values(SHARES, used)[0]
    return {
        name: min(100.0, value) if name.endswith("_pct") else value
        for name, value in shares.items()
        if not name.endswith("_pct") or 0 <= value <= _MOST_PERCENT
    }


def _too_long(reading: Mapping[str, float]) -> bool:
    """Return whether more cycles were counted than the launch can have; False if that is not known."""
    if any(not reading.get(name) for name in (_ACTIVE, XCDS, CLOCK, SECONDS)):
        return False
    return reading[_ACTIVE] / reading[XCDS] > _MOST_CYCLES * 1e6 * reading[CLOCK] * reading[SECONDS]
