"""Formulas for rocprofv3: each metric from AMD's counters, for CDNA (gfx90a, gfx942, gfx950).

The formulas are from rocprofiler-sdk's counter_defs.yaml
and ROCm Compute Profiler. The CSV adds up each counter over
the device's parts, including GRBM_GUI_ACTIVE, so shares of all cycles come from rocprofv3's own derived counters.
"""

from __future__ import annotations

from warpsmith.profiling.formula import Formula, FormulaTable, percent_of, ratio, total

COLUMNS: tuple[str, ...] = ("LDS_Block_Size", "Scratch_Size", "VGPR_Count", "Accum_VGPR_Count")
"""CSV columns that the table uses in addition to counters."""

BLOCKS = "Blocks"
"""Name for the blocks of the grid; the tool's own Grid_Size counts threads."""

THREADS = "Threads"
"""Name for the threads of a block."""

_WAVE = 64
_OPERATIONS = tuple(
    f"SQ_INSTS_VALU_{operation}_{kind}"
    for kind, operations in {"F64": "ADD MUL FMA", "F32": "ADD MUL TRANS FMA", "F16": "ADD MUL TRANS FMA"}.items()
    for operation in operations.split()
)
_UNAVAILABLE = (
    "occupancy_limit_pct", "limit_registers", "limit_shared", "limit_warps", "limit_blocks", "waves",
    "dram_busy_pct", "l2_busy_pct", "sectors_per_request", "store_sectors_per_request", "excess_sectors_pct",
    "local_sectors_pct", "issue_active_pct", "eligible_warps", "long_scoreboard_pct", "short_scoreboard_pct",
    "barrier_stall_pct", "lg_throttle_pct", "math_throttle_pct", "wait_pct", "no_instruction_pct", "membar_pct",
    "gmma_pct", "fp64_pct", "fma_pct", "alu_pct", "xu_pct", "conversion_pct", "active_share_pct",
    "atomic_conflict_pct",
)  # fmt: skip


def _kibibytes(*parts: float) -> float:
    return 1024 * sum(parts)


def _beyond_l2(reads: float, reads_32: float, reads_128: float, writes: float, writes_64: float) -> float:
    """Return bytes that L2 requests from memory: reads of 32, 64 or 128 bytes, writes of 32 or 64."""
    read = 32 * reads_32 + 64 * (reads - reads_32 - reads_128) + 128 * reads_128
    return read + 64 * writes_64 + 32 * (writes - writes_64)


def _beyond_l2_gfx90a(reads: float, reads_32: float, writes: float, writes_64: float) -> float:
    return _beyond_l2(reads, reads_32, 0, writes, writes_64)


def _l1_hits(accesses: float, *misses: float) -> float:
    return 100 - percent_of(sum(misses), accesses)


def _conflicts(conflicts: float, active: float) -> float:
    """Return cycles lost to conflicts for each cycle that an access needs."""
    return ratio(conflicts, active - conflicts)


def _flops(*counts: float) -> float:
    """Return operations from wave instructions, masked-off lanes included; a fused one counts twice."""
    return _WAVE * sum(
        (2 if "_FMA_" in name else 1) * count for name, count in zip(_OPERATIONS, counts, strict=True)
    )


def _fp64_share(*counts: float) -> float:
    others = len(counts) - 3
    return percent_of(_flops(*counts[:3], *(0.0,) * others), _flops(*counts))


def _summed(*names: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the counters' names as derived sums, and as raw counters, which the CSV adds up itself."""
    return tuple(f"{name}_sum" for name in names), names


TABLE: FormulaTable = {
    # Both kinds share one register file since gfx90a.
    "registers_per_thread": (Formula(("VGPR_Count", "Accum_VGPR_Count"), total), Formula(("VGPR_Count",))),
    "shared_bytes": (Formula(("LDS_Block_Size",)),),
    "spill_bytes": (Formula(("Scratch_Size",)),),  # spills and private arrays: the tool does not distinguish them
    "tensor_pct": (Formula(("MfmaUtil",)),),
    "occupancy_pct": (Formula(("OccupancyPercent",)),),
    "blocks": (Formula((BLOCKS,)),),
    "block_threads": (Formula((THREADS,)),),
    "sm_busy_pct": (
        Formula(("VALUBusy", "MfmaUtil", "SALUBusy"), max),
        Formula(("VALUBusy", "MfmaUtil"), max),
    ),
    "l2_hit_pct": (
        Formula(("L2CacheHit",)),
        *(
            Formula(names, lambda hits, misses: percent_of(hits, hits, misses))
            for names in _summed("TCC_HIT", "TCC_MISS")
        ),
    ),
    "l1_hit_pct": tuple(
        Formula(names, _l1_hits)
        for names in _summed(
            "TCP_TOTAL_CACHE_ACCESSES",
            "TCP_TCC_READ_REQ",
            "TCP_TCC_WRITE_REQ",
            "TCP_TCC_ATOMIC_WITH_RET_REQ",
            "TCP_TCC_ATOMIC_WITHOUT_RET_REQ",
        )
    ),
    # Traffic beyond L2; on gfx942 and gfx950 the Infinity Cache may serve a part of it.
    "dram_bytes": (
        Formula(("FETCH_SIZE", "WRITE_SIZE"), _kibibytes),
        Formula(("FetchSize", "WriteSize"), _kibibytes),
        *(
            Formula(names, _beyond_l2)
            for names in _summed(
                "TCC_EA0_RDREQ", "TCC_EA0_RDREQ_32B", "TCC_BUBBLE", "TCC_EA0_WRREQ", "TCC_EA0_WRREQ_64B"
            )
        ),
        *(
            Formula(names, _beyond_l2_gfx90a)
            for names in _summed("TCC_EA_RDREQ", "TCC_EA_RDREQ_32B", "TCC_EA_WRREQ", "TCC_EA_WRREQ_64B")
        ),
    ),
    "bank_conflicts": (Formula(("SQ_LDS_BANK_CONFLICT", "SQ_LDS_IDX_ACTIVE"), _conflicts),),
    "shared_excess_pct": (Formula(("SQ_LDS_BANK_CONFLICT", "SQ_LDS_IDX_ACTIVE"), percent_of),),
    "mio_throttle_pct": (Formula(("SQ_WAIT_INST_LDS", "SQ_WAVE_CYCLES"), percent_of),),  # both in four cycles
    "fp64_share_pct": (Formula(_OPERATIONS, _fp64_share),),
    "flops_counted": (Formula(_OPERATIONS, _flops),),
    # AMD's waves have 64 lanes; scaled to the metric's 32.
    "threads_per_instruction": (
        Formula(("VALUUtilization",), lambda used: 32 * used / 100),
        Formula(("SQ_THREAD_CYCLES_VALU", "SQ_ACTIVE_INST_VALU"), lambda lanes, waves: ratio(lanes, waves) / 2),
    ),
    "atomics_per_request": tuple(
        Formula(names, ratio) for names in _summed("TCC_ATOMIC", "TCC_REQ")
    ),  # as L2 sees them
    "instructions": (Formula(("SQ_INSTS",)),),
    **dict.fromkeys(_UNAVAILABLE, ()),  # no counter measures it, or it needs peaks that the tool does not report
}
"""rocprofv3's formulas by metric name."""
