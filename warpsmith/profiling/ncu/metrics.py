"""Formulas for ncu: each metric from the tool's own metrics, for sm_80 to sm_100.

Metrics that differ by architecture or by version of ncu are alternatives, in order of preference.
"""

from __future__ import annotations

from warpsmith.profiling.formula import Formula, FormulaTable, percent_of, ratio, total

SECTIONS: tuple[str, ...] = (
    "SpeedOfLight",
    "SpeedOfLight_RooflineChart",
    "SpeedOfLight_HierarchicalHalfRooflineChart",
    "ComputeWorkloadAnalysis",
    "MemoryWorkloadAnalysis",
    "MemoryWorkloadAnalysis_Chart",
    "MemoryWorkloadAnalysis_Tables",
    "SchedulerStats",
    "WarpStateStats",
    "InstructionStats",
    "LaunchStats",
    "Occupancy",
    "SourceCounters",
    "WorkloadDistribution",
)
"""ncu sections with the table's metrics and the rules whose findings are quoted."""

DURATION = "gpu__time_duration.sum"
"""Name of the metric with the launch's time."""

_ELAPSED = "avg.pct_of_peak_sustained_elapsed"
_ACTIVE = "avg.pct_of_peak_sustained_active"
_L1 = "l1tex__t_{}_pipe_lsu_mem_{}.sum"
_SASS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"


def requested_metrics() -> tuple[str, ...]:
    """Return every metric that a collector requests, once each.

    It requests all alternatives for other architectures; ncu returns none for metrics that the chip lacks.
    """
    needs = [need for formulas in TABLE.values() for f in formulas if f.collected for need in f.needs]
    return tuple(dict.fromkeys([DURATION, *needs]))


def readable_metrics() -> tuple[str, ...]:
    """Return every metric that the table can use, once each, for readers of reports."""
    needs = [need for formulas in TABLE.values() for formula in formulas for need in formula.needs]
    return tuple(dict.fromkeys([DURATION, *needs]))


def _only(*metrics: str) -> tuple[Formula, ...]:
    """Return formulas for one metric with several names."""
    return tuple(Formula((metric,)) for metric in metrics)


def _pipe(*units: str) -> tuple[Formula, ...]:
    """Return formulas for a pipe's use over all cycles; over active cycles if a report has no other."""
    elapsed = tuple(Formula((f"sm__{unit}.{_ELAPSED}",)) for unit in units)
    active = tuple(Formula((f"sm__{unit}.{_ACTIVE}",), collected=False) for unit in units)
    return elapsed + active


def _stall(reason: str, sampled: str = "") -> tuple[Formula, ...]:
    """Return formulas for the share of a warp's cycles in one state, in percent.

    ncu's ratio `..._per_issue_active` is the number of cycles that a warp spends in the state for each instruction
    issued; `warps_active_per_inst_executed` is the number of all its cycles for each instruction. Over all states,
    including `selected`, the shares add up to about 100. Reports
    without these ratios contain the share itself, or the
    sampler's counts.
    """
    return (
        Formula(
            (
                f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio",
                "smsp__average_warps_active_per_inst_executed.ratio",
            ),
            percent_of,
        ),
        Formula((f"smsp__warp_issue_stalled_{reason}_per_warp_active.pct",), collected=False),
        Formula(
            (f"smsp__pcsamp_warps_issue_stalled_{sampled or reason}", "smsp__pcsamp_sample_count"),
            percent_of,
            collected=False,
        ),
    )


def _l1(kind: str, *accesses: str) -> tuple[str, ...]:
    return tuple(_L1.format(kind, access) for access in accesses)


_GLOBAL = ("global_op_ld", "global_op_st", "global_op_atom", "global_op_red")
_LOCAL = ("local_op_ld", "local_op_st")
_LDGSTS = (
    "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_access.sum",
    "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum",
)
_TMA = (
    "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum",
    "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st.sum",
)


def _first_two(first: float, second: float, *others: float) -> float:
    """Return the first two in percent of the sum."""
    return percent_of(first + second, first, second, *others)


def _last_two(*counts: float) -> float:
    """Return the last two divided by the sum."""
    return ratio(counts[-2] + counts[-1], sum(counts))


def _excess(actual: float, ideal: float) -> float:
    """Return the part beyond the ideal in percent of `done`."""
    return percent_of(actual - ideal, actual)


def _conflicts(loads: float, stores: float, load_requests: float, store_requests: float) -> float:
    return ratio(loads + stores, load_requests + store_requests)


_OPERATIONS = tuple(f"{kind}{op}" for kind in "dfh" for op in ("add", "mul", "fma"))
_COUNTS = tuple(_SASS.format(op) for op in _OPERATIONS)
_RATES = tuple(f"{count}.per_cycle_elapsed" for count in _COUNTS)  # the roofline sections contain rates instead
_CYCLES = "smsp__cycles_elapsed.avg"


def _flops(*counts: float) -> float:
    """Return operations from thread instructions: a fused one
    counts twice; half precision counts pairs, as ncu does."""
    weights = (1, 1, 2, 1, 1, 2, 2, 2, 4)
    return sum(weight * count for weight, count in zip(weights, counts, strict=True))


def _flops_at_rates(cycles: float, *rates: float) -> float:
    return cycles * _flops(*rates)


def _fp64_share(*counts: float) -> float:
    return percent_of(_flops(*counts[:3], *(0.0,) * 6), _flops(*counts))


TABLE: FormulaTable = {
    "registers_per_thread": _only("launch__registers_per_thread"),
    # Without the driver's own kilobyte, so that it matches the compiler's report.
    "shared_bytes": (
        Formula(("launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic"), total),
    ),
    # `_v2` on sm_89; from sm_100 on the warp-level and the asynchronous instructions share the hmma subpipe.
    "tensor_pct": _pipe(
        "pipe_tensor_cycles_active",
        "pipe_tensor_cycles_active_v2",
        "pipe_tensor_subpipe_hmma_cycles_active",
        "pipe_tensor_op_hmma_cycles_active",
        "inst_executed_pipe_tensor",
    ),
    "occupancy_pct": _only(f"sm__warps_active.{_ACTIVE}"),
    "occupancy_limit_pct": _only("sm__maximum_warps_per_active_cycle_pct"),
    "limit_registers": _only("launch__occupancy_limit_registers"),
    "limit_shared": _only("launch__occupancy_limit_shared_mem"),
    "limit_warps": _only("launch__occupancy_limit_warps"),
    "limit_blocks": _only("launch__occupancy_limit_blocks"),
    "blocks": _only("launch__grid_size"),
    "block_threads": _only("launch__block_size"),
    "waves": _only("launch__waves_per_multiprocessor"),
    "active_share_pct": (Formula(("sm__cycles_active.avg", "sm__cycles_active.max"), percent_of),),
    "dram_busy_pct": _only(f"gpu__dram_throughput.{_ELAPSED}", f"dram__throughput.{_ELAPSED}"),
    "sm_busy_pct": _only(f"sm__throughput.{_ELAPSED}"),
    "l2_busy_pct": _only(f"lts__throughput.{_ELAPSED}"),
    "l2_hit_pct": _only("lts__t_sector_hit_rate.pct"),
    "l1_hit_pct": _only("l1tex__t_sector_hit_rate.pct"),
    "dram_bytes": (
        Formula(("dram__bytes_read.sum", "dram__bytes_write.sum"), total),
        Formula(("dram__bytes_op_read.sum", "dram__bytes_op_write.sum"), total),  # from sm_100 on
        Formula(("dram__bytes.sum",), collected=False),
    ),
    "sectors_per_request": (
        Formula(_l1("sectors", "global_op_ld") + _l1("requests", "global_op_ld"), ratio),
        Formula(("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",), collected=False),
    ),
    "store_sectors_per_request": (
        Formula(_l1("sectors", "global_op_st") + _l1("requests", "global_op_st"), ratio),
        Formula(("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",), collected=False),
    ),
    # Sectors that the executed instructions request from L2, against those that their bytes would fill.
    "excess_sectors_pct": (
        Formula(("memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal"), _excess),
        Formula(
            ("derived__memory_l2_theoretical_sectors_global_excessive", "memory_l2_theoretical_sectors_global"),
            percent_of,
            collected=False,
        ),
    ),
    # Only loads and stores: the total includes other users of the banks.
    "bank_conflicts": tuple(
        Formula(
            (
                "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
                "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
                f"smsp__{prefix}inst_executed_op_shared_ld.sum",
                f"smsp__{prefix}inst_executed_op_shared_st.sum",
            ),
            _conflicts,
            collected=bool(prefix),
        )
        for prefix in ("sass_", "")
    ),
    "shared_excess_pct": (
        Formula(("memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"), _excess),
        Formula(
            ("derived__memory_l1_wavefronts_shared_excessive", "memory_l1_wavefronts_shared"),
            percent_of,
            collected=False,
        ),
    ),
    # Asynchronous copies and TMA also move sectors; without them a few spills would look like all of the traffic.
    "local_sectors_pct": (
        Formula(_l1("sectors", *_LOCAL, *_GLOBAL) + _LDGSTS + _TMA, _first_two),
        Formula(_l1("sectors", *_LOCAL, *_GLOBAL) + _LDGSTS, _first_two),
        Formula(_l1("sectors", *_LOCAL, *_GLOBAL), _first_two),
    ),
    "issue_active_pct": (
        Formula((f"smsp__issue_active.{_ACTIVE}",)),
        Formula(("smsp__issue_active.avg.per_cycle_active",), lambda issued: 100 * issued, collected=False),
    ),
    "eligible_warps": _only("smsp__warps_eligible.avg.per_cycle_active"),
    "long_scoreboard_pct": _stall("long_scoreboard"),
    "short_scoreboard_pct": _stall("short_scoreboard"),
    "barrier_stall_pct": _stall("barrier"),
    "lg_throttle_pct": _stall("lg_throttle"),
    "mio_throttle_pct": _stall("mio_throttle"),
    "math_throttle_pct": _stall("math_pipe_throttle"),
    "wait_pct": _stall("wait"),
    "no_instruction_pct": _stall("no_instruction", sampled="no_instructions"),
    "membar_pct": _stall("membar"),
    "gmma_pct": _stall("gmma", sampled="warpgroup_arrive"),  # sm_90 alone
    "fp64_pct": _pipe("pipe_fp64_cycles_active", "inst_executed_pipe_fp64"),
    "fp64_share_pct": (Formula(_COUNTS, _fp64_share), Formula(_RATES, _fp64_share, collected=False)),
    "fma_pct": _pipe("pipe_fma_cycles_active", "inst_executed_pipe_fma"),
    "alu_pct": _pipe("pipe_alu_cycles_active", "inst_executed_pipe_alu"),
    "xu_pct": _pipe("inst_executed_pipe_xu"),
    # Thread instructions over those of full warps.
    "conversion_pct": (
        Formula(
            (_SASS.format("conversion"), "smsp__inst_executed_pipe_xu.sum"),
            lambda conversions, special: percent_of(conversions / 32, special),
        ),
    ),
    "flops_counted": (Formula(_COUNTS, _flops), Formula((_CYCLES, *_RATES), _flops_at_rates, collected=False)),
    # Active threads, predicated off or not: they show how far the warp diverged.
    "threads_per_instruction": _only("smsp__thread_inst_executed_per_inst_executed.ratio"),
    "atomics_per_request": (
        Formula(
            ("sm__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts.sum", *_l1("requests", *_GLOBAL)),
            _last_two,
        ),
        Formula(_l1("requests", *_GLOBAL), _last_two),
    ),
    "atomic_conflict_pct": _only(f"lts__d_atomic_input_cycles_active.{_ELAPSED}"),
    "instructions": (Formula(("smsp__inst_executed.sum",)), Formula(("inst_executed",), collected=False)),
}
"""ncu's formulas by metric name."""
